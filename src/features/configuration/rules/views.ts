// What the HTTP API answers about the configuration; the page has its types from here. Secrets are
// masked everywhere: `[redacted]`.

import { z } from 'zod';
import type { JsonValue } from '../../../kernel/config/json-paths.ts';

const MAX_CHANGES = 1000;
const MAX_PATH_CHARS = 300;
const MAX_TEXT_CHARS = 1_000_000;
/** Names that reach into the prototypes of objects. */
const REFUSED = /(?:^|\.)(?:__proto__|constructor|prototype)(?:\.|$)/;

/** What was parsed from JSON is JSON. */
const json = z.custom<JsonValue>((value) => value !== undefined);

const problem = z.object({
  path: z.string().describe('Dotted; empty for the whole file.'),
  problem: z.string(),
  remedy: z.string(),
  line: z.number().exactOptional().describe('In the file, or in the text that was sent.'),
});

const applies = z
  .enum(['turn', 'channel', 'start'])
  .describe(
    'turn: from the next message on; channel: the channel restarts; start: when the gateway starts again.',
  );

const difference = z.object({
  path: z.string(),
  before: json.exactOptional().describe('Absent: the default.'),
  after: json.exactOptional(),
  applies,
});

export const shownConfiguration = z.object({
  version: z.string().describe('Of the file; a change names the version it was made of.'),
  written: z
    .record(z.string(), json)
    .exactOptional()
    .describe('The file, secrets masked; absent while it is no JSON.'),
  variables: z
    .array(z.object({ path: z.string(), name: z.string() }))
    .describe('Settings that an environment variable sets; it takes precedence.'),
  problems: z.array(problem).describe('Why the file is not in use; the last valid one is.'),
});

export const configurationSchema = z.object({
  schema: z.record(z.string(), json).describe('JSON Schema, with descriptions and defaults.'),
  atStart: z.array(z.string()).describe('Keys and sections that apply when the gateway starts.'),
});

export const settingChanges = z.strictObject({
  version: z.string().max(100),
  text: z
    .string()
    .max(MAX_TEXT_CHARS)
    .exactOptional()
    .describe('The whole file as JSON, edited: masks stay the secrets they stand for.'),
  changes: z
    .array(
      z.strictObject({
        path: z
          .string()
          .max(MAX_PATH_CHARS)
          .regex(/^[^.]+(?:\.[^.]+)*$/)
          .refine((path) => !REFUSED.test(path)),
        value: json.exactOptional().describe('Absent: the default applies.'),
      }),
    )
    .max(MAX_CHANGES)
    .describe('Of the file, or of the text where there is one.'),
});

export const checkedChanges = z.object({
  problems: z.array(problem).describe('What keeps the changes from being saved.'),
  differences: z.array(difference),
});

export const configurationHistory = z.object({
  versions: z
    .array(
      z.object({
        id: z.string(),
        at: z.number().describe('Epoch milliseconds: when it was written.'),
        isCurrent: z.boolean(),
        changes: z
          .array(difference)
          .describe('From the version before it, secrets masked; none for the oldest one.'),
      }),
    )
    .describe('The newest first. The current one is absent while the file is not valid.'),
});

export const restoredVersion = z.strictObject({
  id: z.string().max(100),
  version: z.string().max(100).describe('Of the file that is replaced.'),
});

export type ConfigurationHistory = z.infer<typeof configurationHistory>;
export type ShownConfiguration = z.infer<typeof shownConfiguration>;
export type ConfigurationSchema = z.infer<typeof configurationSchema>;
export type SettingChanges = z.infer<typeof settingChanges>;
export type SettingChange = z.infer<typeof settingChanges>['changes'][number];
export type CheckedChanges = z.infer<typeof checkedChanges>;
export type SettingProblem = z.infer<typeof problem>;
export type Difference = z.infer<typeof difference>;
