// The `sessions` and `memory` sections of the configuration.

import { z } from 'zod';
import { count } from './settings-fields.ts';

export const sessionsSchema = z.strictObject({
  rotationSizeBytes: count(10_000, 1_000_000_000).default(1_000_000),
  rotationTokens: count(1000, 100_000_000).default(200_000),
  carry: z
    .enum(['recent', 'nothing'])
    .default('recent')
    .describe('What a new file opens with: the summary and last messages, or nothing.'),
  rotationCarryMessages: count(0, 1000).default(10),
  keepWorkDays: count(1, 3650)
    .default(30)
    .describe('Days that files of conversations of helpers and jobs are kept.'),
  recordPrompts: z
    .boolean()
    .default(true)
    .describe('Keeps what models were asked with, so that turns can be played again as they were.'),
  timeZone: z
    .string()
    .default('')
    .describe('IANA zone whose midnight starts a new file; empty: the machine’s.'),
});

export const memorySchema = z.strictObject({
  enabled: z.boolean().default(true).describe('remember, recall and MEMORY.md in the prompt.'),
  reflection: z
    .strictObject({
      everyHours: count(0, 8760)
        .default(0)
        .describe('How often the owners’ memory is thought over by itself; 0: never.'),
      apply: z
        .enum(['ask', 'write'])
        .default('ask')
        .describe('An owner sees what would change and says yes; or it is written at once.'),
    })
    .prefault({}),
});
