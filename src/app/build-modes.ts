// Builds the modes of the agent: which models share the work of a turn, and what people see of that.

import { createModes, type ModeKinds } from '../agent/modes/create-modes.ts';
import type { Modes } from '../agent/modes/modes.ts';
import type { StatusSource } from '../gateway/command.ts';
import type { ModeDesk } from '../gateway/mode-desk.ts';
import type { SessionSettingsStore } from '../gateway/session-settings.ts';
import type { LiveConfig } from './live-config.ts';

export type ModeParts = { readonly live: LiveConfig; readonly settings: SessionSettingsStore };

export type BuiltModes = {
  readonly modes: Modes;
  readonly desk: ModeDesk;
  readonly status: StatusSource;
};

export function buildModes({ live, settings }: ModeParts): BuiltModes {
  const kinds: ModeKinds = {};
  const configured = () => live.config.agents.mode;
  const desk: ModeDesk = {
    configured,
    problems(mode) {
      if (mode === 'inline') return [];
      return kinds[mode]?.problems() ?? ['nothing is set up for it'];
    },
    about: (mode) => kinds[mode]?.about() ?? ['one model does all'],
  };
  return {
    modes: createModes(kinds, configured),
    desk,
    async status(session) {
      const mode = (await settings.get(session)).mode ?? configured();
      if (mode === 'inline') return [];
      const problems = desk.problems(mode);
      return problems.length === 0
        ? [`Mode: ${mode}`, ...desk.about(mode)]
        : [`Mode: ${mode}, cannot work: ${problems.join('; ')}`];
    },
  };
}
