// The part of the configuration about helpers: turns that a turn of the agent starts.

import { z } from 'zod';
import { count } from './fields.ts';

export const subagentsSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe('The agent may start helpers.'),
    maxDepth: count(1, 3)
      .default(1)
      .describe('1: helpers start none; 2: they may start helpers, which start none.'),
    maxPerParent: count(1, 50).default(5).describe('Helpers of one conversation at a time.'),
    maxRunning: count(1, 200).default(8).describe('Helpers of all conversations at a time.'),
    minutes: count(1, 1440).default(15).describe('Wall time of one helper, after a restart too.'),
    tokens: count(1000, 100_000_000)
      .default(300_000)
      .describe('Tokens, in and out, of one helper over all its calls.'),
    model: z
      .string()
      .default('')
      .describe('fast, default or a name; empty: the model of the conversation that asks.'),
  })
  .prefault({});

export type SubagentsConfig = z.infer<typeof subagentsSchema>;
