// What the HTTP API answers about back-ups; the page has its types from here.

import { z } from 'zod';

const moment = z.number().describe('Epoch milliseconds.');
const what = z.enum(['create', 'verify']);
const about = z.object({ what, id: z.string().exactOptional().describe('Of a verified one.') });
const run = about.extend({ since: moment });
const end = about.extend({
  at: moment,
  isOk: z.boolean(),
  text: z.string().describe('What the command says at its end.'),
});

export const backupState = z.object({
  place: z.string().describe('Where they are kept; empty: nowhere yet.'),
  suggestedPlace: z.string().describe('A folder beside the home.'),
  every: z.string().describe('As in backup.every; empty: only on request.'),
  keep: z.string().describe('As in backup.keep; empty: all.'),
  made: z.object({ id: z.string(), at: moment, bytes: z.number() }).exactOptional(),
  verified: z
    .object({ id: z.string(), at: moment, ok: z.boolean() })
    .exactOptional()
    .describe('The last one on which a gateway was started for a test.'),
  failing: z
    .object({ since: moment, last: moment, reason: z.string() })
    .exactOptional()
    .describe('The attempts of the schedule fail.'),
  running: run.exactOptional(),
  ended: end.exactOptional().describe('The last that ended since the gateway started.'),
});

export const backupList = z.object({
  place: z.string(),
  backups: z
    .array(z.object({ id: z.string(), at: moment, files: z.number(), bytes: z.number() }))
    .describe('Newest first.'),
});

export type BackupState = z.infer<typeof backupState>;
export type BackupList = z.infer<typeof backupList>;
export type BackupRun = z.infer<typeof run>;
export type BackupEnd = z.infer<typeof end>;
