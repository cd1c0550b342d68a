// The configuration of what is measured and kept about the work itself.

import { z } from 'zod';
import { flag, secret, section } from '../config/settings-fields.ts';

export const telemetrySection = section({
  metricsFile: flag(true).describe('metrics.jsonl in the home: a line for every model call.'),
  prometheus: flag(true).describe(
    '/metrics for Prometheus, with the gateway’s token as a bearer token.',
  ),
  audit: flag(true).describe(
    'audit.jsonl in the home: what was done with effects, as a chain of hashes.',
  ),
  otel: section({
    endpoint: z
      .string()
      .regex(/^(?:https?:\/\/\S+)?$/, 'Write an address like http://localhost:4318/v1/traces')
      .default('')
      .describe('Spans are sent there as OTLP over HTTP; empty: none are made.'),
    headers: z
      .record(z.string(), secret())
      .default({})
      .describe('Sent along, e.g. an authorization.'),
    serviceName: z.string().min(1).max(100).default('nanobot').describe('As it is shown there.'),
  }),
});
