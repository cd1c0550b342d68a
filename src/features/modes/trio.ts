// Trio: a router decides what is done next, a specialist works on it, the main model writes. Where the
// router does not answer, the main model goes on with its tools.

import type { TrioDeps } from './mode-deps.ts';
import type { ModeKind } from './modes.ts';
import type { RoleModel } from './role-health.ts';
import { missing } from './role-probes.ts';

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
