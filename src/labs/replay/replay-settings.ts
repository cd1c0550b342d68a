// The settings that a turn is played again with: those it was recorded with, those of today, or those of a
// file; what is set on the command line counts over all of them.

import { withAskedConfig } from '../../features/request-log/asked-config.ts';
import type { RecordedAsk } from '../../features/request-log/rules/asked.ts';
import type { ConfigOverrides } from '../../kernel/config/check.ts';
import { type Config, configSchema } from '../../kernel/config/config.ts';
import type { JsonObject } from '../../kernel/config/json.ts';
import { withValue } from '../../kernel/config/json-paths.ts';
import type { Settled } from './replay.ts';

export type ReplaySettings = {
  /** As loaded, with what was set. */
  readonly config: Config;
  readonly overrides: ConfigOverrides;
  readonly isRecorded: boolean;
  /** From the next turn on the agent works with them. */
  configure(config: Config): void;
};

const THINKING = 'agents.defaults.thinkingBudget';
const MODE = 'agents.mode';
const NOT_FITTING =
  'the settings it was recorded with do not fit this program: those of today are used';

export function settleFor(wish: ReplaySettings): (ask: RecordedAsk | undefined) => Settled {
  const { config, overrides, isRecorded, configure } = wish;
  const today = { notes: [], settings: { thinkingBudget: config.agents.defaults.thinkingBudget } };
  return (ask) => {
    const isWanted = isRecorded && ask?.config !== undefined;
    const then = isWanted ? withAskedConfig(config, ask.config) : undefined;
    configure(unsummed(then === undefined ? config : withSet(then, overrides)));
    if (ask === undefined || !isRecorded) return today;
    const { thinkingBudget, mode, engine } = ask;
    const chosen = {
      ...(THINKING in overrides ? today.settings : { thinkingBudget }),
      ...(mode === undefined || MODE in overrides ? {} : { mode }),
      ...(engine === undefined ? {} : { engine }),
    };
    const notes = isWanted && then === undefined ? [NOT_FITTING] : [];
    return { notes, settings: chosen };
  };
}

/** What was set was found to fit when the configuration was loaded. */
function withSet(config: Config, overrides: ConfigOverrides): Config {
  const written: JsonObject = JSON.parse(JSON.stringify(config));
  const set = Object.entries(overrides).reduce(
    (result, [path, value]) => withValue(result, path, value),
    written,
  );
  return configSchema.parse(set);
}

/** What the record leaves out is not summed up anew. */
function unsummed(config: Config): Config {
  const { agents } = config;
  const compaction = { ...agents.defaults.compaction, enabled: false };
  return { ...config, agents: { ...agents, defaults: { ...agents.defaults, compaction } } };
}
