// What the HTTP API answers about the use of models; the page has its types from here.

import { z } from 'zod';

const micros = z.number().describe('Cost in millionths of the currency; 0 if no price is known.');
const amount = z.object({ tokens: z.number(), micros });
const spent = amount.extend({ calls: z.number() });
const group = spent.extend({ name: z.string() });

export const usageToday = z.object({
  currency: z.string(),
  spent,
  budgets: z
    .array(
      z.object({
        key: z.string().describe('As in /budget more: person telegram:700, job j1, total.'),
        name: z.string().exactOptional().describe('Of its holder.'),
        spent,
        limit: amount.describe('0: no limit of that kind.'),
        left: amount,
      }),
    )
    .describe('Those with a limit that were used today, and that of all together.'),
});

const percentiles = z.object({
  count: z.number(),
  p50: z.number().describe('Milliseconds.'),
  p90: z.number(),
  p99: z.number(),
});

export const usageReport = z.object({
  currency: z.string(),
  days: z.array(spent.extend({ day: z.string() })).describe('The last 30 days, oldest first.'),
  people: z.array(group),
  jobs: z.array(group),
  times: z
    .object({
      queue: percentiles.exactOptional().describe('From the arrival of a message to its turn.'),
      tools: percentiles.exactOptional().describe('Of tool calls.'),
      delivery: percentiles.exactOptional().describe('Of sending an answer.'),
    })
    .describe('Of the last 1,000 of each since the gateway started; absent where there is none.'),
  calls: z
    .object({
      since: z.number().describe('Epoch milliseconds of the oldest recorded call.'),
      models: z.array(group),
      channels: z.array(group),
      inputTokens: z.number(),
      cachedTokens: z.number().describe('Of the input: read from the cache of the vendor.'),
      failed: z.number(),
      answering: percentiles.describe('From the request to the end of the answer.'),
      waiting: percentiles.exactOptional().describe('For a place at a local model server.'),
    })
    .exactOptional()
    .describe('From the metrics file; absent while it holds no call.'),
});

export type UsageToday = z.infer<typeof usageToday>;
export type UsageReport = z.infer<typeof usageReport>;
export type UsageGroup = z.infer<typeof group>;
export type Spent = z.infer<typeof spent>;
