// What the HTTP API answers about allow rules; the page has its types from here. Texts are untrusted and
// never markup, except `asker`, which is Markdown.

import { z } from 'zod';

export const ruleList = z.object({
  rules: z.array(
    z.object({
      id: z.string(),
      tool: z.string(),
      about: z.string().describe('What it covers: the call, or the recipients.'),
      access: z.string().describe('What the call does: read, web, write, send, execute …'),
      asker: z.string(),
      givenAt: z.number().describe('Epoch milliseconds.'),
      until: z.number().exactOptional().describe('Absent: until it is revoked.'),
      uses: z.number(),
      lastUsedAt: z.number().exactOptional(),
    }),
  ),
});

export const oneRule = z.object({ id: z.string().regex(/^[0-9a-f]{64}$/, 'is not an id') });
export const revoked = z.object({ result: z.string().describe('What was done, for people.') });

export type RuleList = z.infer<typeof ruleList>;
