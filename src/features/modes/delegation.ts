// Delegation: a cheaper model, the runner, digests long results of tools before the main model sees them. It
// has no tool but looking into the result; the whole stays readable by read_result.

import type { TurnMode } from './mode.ts';
import type { DelegationDeps } from './mode-deps.ts';
import type { ModeKind, ModeTurn } from './modes.ts';
import type { RoleModel } from './role-health.ts';
import { missing } from './role-probes.ts';

const KEY = 'agents.delegation.model';

export function createDelegation(deps: DelegationDeps): ModeKind {
  const { health, models, settings } = deps;
  return {
    problems() {
      const { model } = settings();
      if (model !== '') return missing(models, KEY, model, true);
      const { defaultModel } = models();
      return runnerFor(deps, defaultModel) === undefined
        ? [`${KEY} names no model, and there is no cheaper one beside ${defaultModel}`]
        : [];
    },
    about() {
      const who = runnerFor(deps, models().defaultModel);
      return [
        ...(who === undefined ? [] : [health.sentence(who)]),
        `Results above ${settings().aboveChars} characters are digested first.`,
      ];
    },
    async open(turn) {
      const digesting = await openDigests(turn, deps);
      return { toolbox: turn.toolbox, ...digesting };
    },
  };
}

/** Undefined where only the main model itself could be asked. */
function runnerFor(
  { settings, models }: Pick<DelegationDeps, 'settings' | 'models'>,
  main: string,
): RoleModel | undefined {
  const chosen = settings().model;
  const model = chosen === '' ? models().fast(main) : chosen;
  return chosen === '' && model === main ? undefined : { role: 'tool_runner', model };
}

/** What of a mode digests results. */
export async function openDigests(
  turn: ModeTurn,
  deps: DelegationDeps,
): Promise<Pick<TurnMode, 'shown' | 'cue'>> {
  const who = runnerFor(deps, turn.input.settings.model ?? turn.models.defaultModel);
  if (who === undefined) return {};
  const { digestsOf } = await import('./runner.ts');
  return digestsOf(turn, who, deps);
}
