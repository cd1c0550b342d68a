// What the HTTP API answers about updates; the page has its types from here.

import { z } from 'zod';

const news = z.object({ version: z.string(), homepage: z.string().exactOptional() });

export const updateView = z.object({
  newer: news.exactOptional().describe('A newer version that is known of.'),
  remedy: z.string().exactOptional().describe('How to update, where the page cannot.'),
  isRunning: z.boolean().describe('An update is under way.'),
  run: z
    .object({
      from: z.string(),
      to: z.string(),
      step: z
        .string()
        .describe(
          'preparing, stopping, switched, watching, rolling-back, restoring; done, rolled-back or kept.',
        ),
      at: z.number().describe('Epoch milliseconds: when it began.'),
      outcome: z.string().exactOptional().describe('How it ended, for people.'),
    })
    .exactOptional()
    .describe('The last one.'),
  said: z.array(z.string()).describe('The last lines of an update that was started here.'),
});

export type UpdateView = z.output<typeof updateView>;
