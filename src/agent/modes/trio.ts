// Trio: a router decides what is done next, a specialist works on it, the main model writes. Where the
// router does not answer, the main model goes on with its tools.

import type { TrioConfig } from '../../core/config-modes.ts';
import { ProviderError } from '../../core/errors.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { TurnMode } from './mode.ts';
import type { ModeKind, ModeTurn } from './modes.ts';
import { type RoleHealth, type RoleModel, titleOf } from './role-health.ts';
import type { TraceRecord } from './trace.ts';

export type TrioDeps = {
  readonly health: RoleHealth;
  /** Asked at each turn. */
  settings(): TrioConfig;
  models(): ModelRegistry;
  trace(record: TraceRecord): void;
  /** Long results, where a runner is there. */
  digests(turn: ModeTurn): Promise<Pick<TurnMode, 'shown'>>;
};

export function createTrio(deps: TrioDeps): ModeKind {
  const { health, settings, models } = deps;
  return {
    problems() {
      const { router, specialist } = settings();
      return [
        ...missing(models, 'agents.trio.router.model', router.model, true),
        ...missing(models, 'agents.trio.specialist.model', specialist.model, false),
      ];
    },
    about() {
      const { router, specialist, strict } = settings();
      const roles: readonly RoleModel[] = [
        { role: 'router', model: router.model },
        ...(specialist.model === ''
          ? []
          : [{ role: 'specialist', model: specialist.model } as const]),
      ];
      const main = strict ? 'The main model only writes.' : 'The main model has its tools.';
      const none = specialist.model === '' ? ['There is no specialist.'] : [];
      return [...roles.map((role) => health.sentence(role)), ...none, main];
    },
    async open(turn) {
      const { openTrio } = await import('./trio-turn.ts');
      return openTrio(turn, deps, await deps.digests(turn));
    },
  };
}

/** A sentence about a model that cannot be asked. */
export function missing(
  models: () => ModelRegistry,
  key: string,
  model: string,
  isNeeded: boolean,
): readonly string[] {
  if (model === '') return isNeeded ? [`${key} names no model`] : [];
  try {
    models().resolve(model);
    return [];
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return [`${key}: ${error.userText ?? `${model} is served by nobody`}`];
  }
}

/** For the person whose turn finds out. */
export const degradedNotice = (who: RoleModel) =>
  `The ${titleOf(who)} does not answer; I go on with the main model and its tools.`;
