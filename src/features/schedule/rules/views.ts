// What the HTTP API answers about jobs; the page has its types from here.

import { z } from 'zod';

const moment = z.number().describe('Epoch milliseconds.');
const ending = z.enum(['done', 'failed', 'stopped', 'skipped']);
export const jobKind = z
  .enum(['ask', 'say', 'workflow'])
  .describe(
    'ask: the agent does what the text says; say: the text itself is sent; workflow: it names a workflow, with inputs as key=value.',
  );

export const shownJob = z.object({
  id: z.string(),
  name: z.string(),
  kind: jobKind,
  text: z.string(),
  schedule: z.string().describe('For people.'),
  check: z.string().exactOptional().describe('Looked at before each run, without a model.'),
  nextAt: moment.exactOptional(),
  isEnabled: z.boolean(),
  isRunning: z.boolean(),
  last: z.object({ at: moment, how: ending, detail: z.string().exactOptional() }).exactOptional(),
  failures: z.number().describe('Failed runs in a row.'),
  maker: z.string().exactOptional().describe('Absent: made at the command line or on the page.'),
  to: z.string().exactOptional().describe('The chat; absent: where its maker was last.'),
});
export const jobList = z.object({
  isOn: z.boolean().describe('cron.enabled: while it is false, nothing runs by itself.'),
  jobs: z.array(shownJob),
});
export const jobRuns = z.object({
  currency: z.string(),
  runs: z
    .array(
      z.object({
        at: moment,
        begunAt: moment.exactOptional(),
        how: ending,
        detail: z.string().exactOptional(),
        tokens: z.number(),
        micros: z.number().describe('Cost in millionths of the currency; 0 if no price is known.'),
        text: z.string().describe('What was sent; empty if nothing was, or it is not stored now.'),
      }),
    )
    .describe('Newest first, at most 50.'),
});

export type ShownJob = z.infer<typeof shownJob>;
export type JobList = z.infer<typeof jobList>;
export type JobRuns = z.infer<typeof jobRuns>;
