// The limits' part of the configuration: messages, and what may be spent on models in a day.

import { z } from 'zod';
import { count } from './config-fields.ts';

const MOST_MESSAGES = 1_000_000;
const messageCount = () => count(0, MOST_MESSAGES);

const messages = z.strictObject({
  perMinute: messageCount()
    .default(20)
    .describe('Messages of one person in any minute; owners ten times as many; 0: no limit.'),
  perDay: messageCount()
    .default(200)
    .describe('Messages of one person in a day; owners ten times as many; 0: no limit.'),
  groupPerMinute: messageCount()
    .default(30)
    .describe('Messages to the agent in one group in any minute, of all members but owners.'),
  groupPerDay: messageCount().default(500).describe('The same in a day.'),
});

const exception = z.strictObject({
  who: z
    .string()
    .describe('A channel, or channel:id with the stable id of a person or a group there.'),
  perMinute: messageCount().optional(),
  perDay: messageCount().optional(),
});

export const limitsSchema = z.strictObject({
  messages: messages.prefault({}),
  exceptions: z
    .array(exception)
    .default([])
    .describe('Other limits for a channel, a person or a group; the most exact one counts.'),
});

export type LimitsConfig = z.infer<typeof limitsSchema>;
