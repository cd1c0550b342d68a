// What the HTTP API answers about the gateway itself; the page has its types from here.

import { z } from 'zod';
import { updateView } from '../../update/rules/views.ts';
import { channelSpan } from './channel-history.ts';
import { queueDepths } from './queue-depths.ts';

const moment = z.number().describe('Epoch milliseconds.');

const finding = z.object({
  check: z.string(),
  level: z.enum(['ok', 'warn', 'fail']),
  text: z.string(),
  remedy: z.string().exactOptional(),
  fixable: z.boolean(),
  fix: z.string().exactOptional().describe('What the fix does.'),
  notFixed: z.string().exactOptional().describe('Why the fix that was tried failed.'),
});
export const findings = z.array(finding);

export const operationsState = z.object({
  version: z.string(),
  since: moment.describe('When the gateway started.'),
  update: updateView,
  queue: z.object({
    waiting: z.number(),
    running: z.number(),
    toSend: z.number(),
    oldestAt: moment.exactOptional().describe('Of the waiting ones.'),
    depths: queueDepths.describe('The last day, oldest first.'),
  }),
  channels: z.array(
    z.object({
      name: z.string(),
      label: z.string(),
      kind: z.string().describe('off, starting, running, elsewhere, degraded or stopped.'),
      text: z.string(),
      spans: z.array(channelSpan).describe('The last 7 days, oldest first.'),
    }),
  ),
  deadCount: z.number(),
  dead: z
    .array(
      z.object({
        id: z.string(),
        direction: z.enum(['inbound', 'outbound']),
        session: z.string(),
        state: z.enum(['dead', 'unknown']).describe('unknown: it may have arrived.'),
        reason: z.string(),
        attempts: z.number(),
        excerpt: z.string(),
        at: moment,
      }),
    )
    .describe('Messages set aside, oldest first, 100 at most.'),
  doctor: z.object({
    running: z.enum(['check', 'fix']).exactOptional(),
    at: moment.exactOptional().describe('Of the findings.'),
    findings: findings.exactOptional(),
    problem: z.string().exactOptional().describe('Why there are none.'),
  }),
});

const auditEntry = z.object({
  seq: z.number(),
  at: moment,
  kind: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
export const auditList = z.object({
  isOn: z.boolean().describe('telemetry.audit'),
  entries: z.array(auditEntry).describe('Newest first.'),
});
export const auditVerdict = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('running') }).describe('Ask again.'),
  z.object({
    kind: z.literal('intact'),
    entries: z.number(),
    unfinished: z.number().describe('Begun calls without a recorded outcome.'),
  }),
  z.object({
    kind: z.literal('broken'),
    file: z.string(),
    line: z.number(),
    problem: z.string(),
  }),
]);

export const logPart = z.object({
  place: z.enum(['older', 'newer']).describe('older: before all that was sent.'),
  lines: z.array(z.string()).describe('As they are in the file, oldest first.'),
});

export type OperationsState = z.infer<typeof operationsState>;
export type AuditList = z.infer<typeof auditList>;
export type AuditVerdict = z.infer<typeof auditVerdict>;
export type LogPart = z.infer<typeof logPart>;
