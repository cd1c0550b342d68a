// Those settings that shape a turn, as they are kept beside what a model was asked with, and put back
// where a turn is played again. No secret is among them.

import { printOf } from '../../agent/prints.ts';
import { type Config, configSchema } from '../../kernel/config/config.ts';
import type { AskedPiece } from './rules/asked.ts';

/** Worked out once for each configuration. */
export function createAskedConfig(): (config: Config) => AskedPiece {
  const made = new WeakMap<Config, AskedPiece>();
  return (config) => {
    const text = () => JSON.stringify(shaping(config));
    const piece = made.get(config) ?? pieceOf(text());
    made.set(config, piece);
    return piece;
  };
}

const pieceOf = (text: string): AskedPiece => ({ print: printOf(text), text });

function shaping({ agents, localModels, media, sessions }: Config) {
  const { workspace: _, compaction, ...defaults } = agents.defaults;
  // Whether it is summed up some time is no matter of one turn.
  const { enabled: __, ...summing } = compaction;
  return {
    agents: { ...agents, defaults: { ...defaults, compaction: summing } },
    localModels: { smallTools: localModels.smallTools },
    media: { images: media.images, maxInlineChars: media.maxInlineChars },
    sessions: { timeZone: sessions.timeZone },
  };
}

/** `config` with the settings of then; undefined where they do not fit this program. */
export function withAskedConfig(config: Config, then: unknown): Config | undefined {
  const parsed = configSchema.safeParse(merged(config, then));
  return parsed.success ? parsed.data : undefined;
}

function merged(base: unknown, over: unknown): unknown {
  if (!isSection(base) || !isSection(over)) return over === undefined ? base : over;
  const keys = [...new Set([...Object.keys(base), ...Object.keys(over)])];
  return Object.fromEntries(keys.map((key) => [key, merged(base[key], over[key])]));
}

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
