// The modes there are. A turn is inline, and nothing of the others is read, unless its mode says otherwise.

import type { ModeKind, Modes } from './modes.ts';
import type { AgentMode } from './rules/mode.ts';

export type ModeKinds = Readonly<Partial<Record<AgentMode, ModeKind>>>;

export function createModes(kinds: ModeKinds, configured: () => AgentMode): Modes {
  return {
    async open(chosen, turn) {
      const kind = kinds[chosen ?? configured()];
      if (kind === undefined) return undefined;
      const problems = await kind.problems();
      if (problems.length === 0) return kind.open(turn);
      turn.log.warn('mode cannot work, the main model answers alone', { problems });
      return undefined;
    },
  };
}
