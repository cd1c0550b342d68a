// What the HTTP API answers about the heartbeat and the quiet hours; the page has its types from here.

import { z } from 'zod';

const moment = z.number().describe('Epoch milliseconds.');
const hours = z.string().describe('E.g. 22:00-07:00.');

export const shownHeartbeat = z.object({
  isOn: z.boolean().describe('heartbeat.enabled'),
  everyMins: z.number(),
  activeHours: hours.describe('Empty: at any time.'),
  text: z.string().describe('HEARTBEAT.md of the workspace; empty where it does not exist.'),
  version: z.string().describe('Of the text; a change names the version it was made of.'),
  hasTasks: z.boolean().describe('Without a task, no model is called.'),
  isRunning: z.boolean(),
  lookedAt: moment.exactOptional().describe('The last look at the file.'),
  begunAt: moment.exactOptional().describe('The last look that found a task.'),
  quietHours: hours.describe('Of everybody who set none of their own; empty: none.'),
  timeZone: z.string(),
});

export type ShownHeartbeat = z.output<typeof shownHeartbeat>;
