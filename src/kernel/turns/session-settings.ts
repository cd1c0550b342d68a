// What a person chose for one conversation: model, thinking, what happens to messages that come
// while a turn runs. Never global.

import type { TurnSettings } from '../../agent/agent.ts';
import type { CompactionEngine } from '../../agent/rules/compaction.ts';
import type { AgentMode } from '../../features/modes/rules/mode.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import type { SessionKey } from '../message/ids.ts';

const SETTINGS = rowShape<SessionSettings>({
  model: text.optional(),
  beforeLocal: text.optional(),
  thinkingBudget: number.optional(),
  queueMode: text.optional(),
  mode: text.optional(),
  engine: text.optional(),
});

export type SessionSettings = {
  readonly model?: string;
  /** The model to which /local goes back; undefined: that of all. */
  readonly beforeLocal?: string;
  readonly thinkingBudget?: number;
  readonly queueMode?: 'steer' | 'followup';
  /** How its turns share their work among models. */
  readonly mode?: AgentMode;
  /** How what came before is summed up. */
  readonly engine?: CompactionEngine;
};

/** What of it a turn is run with. */
export function turnSettingsOf(
  { model, mode, engine, thinkingBudget }: SessionSettings,
  defaults: { readonly thinkingBudget: number },
): TurnSettings {
  return {
    thinkingBudget: thinkingBudget ?? defaults.thinkingBudget,
    ...(model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { mode }),
    ...(engine === undefined ? {} : { engine }),
  };
}

export type SessionSettingsStore = ReturnType<typeof createSessionSettings>;

export function createSessionSettings(state: KeyValueStore) {
  return {
    async get(session: SessionKey): Promise<SessionSettings> {
      return jsonRow((await state.get(session)) ?? '', SETTINGS) ?? {};
    },
    set: (session: SessionKey, settings: SessionSettings) =>
      state.set(session, JSON.stringify(settings)),
  };
}
