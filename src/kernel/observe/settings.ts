// The configuration of metrics and records about the work itself.

import { z } from 'zod';
import { flag, secret, section } from '../config/settings-fields.ts';

export const telemetrySection = section({
  metricsFile: flag(true).describe('Write metrics.jsonl in the home: a line per model call.'),
  prometheus: flag(true).describe(
    'Serve /metrics for Prometheus, with the gateway token as bearer token.',
  ),
  audit: flag(true).describe(
    'Write audit.jsonl in the home: every action with effects, as a chain of hashes.',
  ),
  otel: section({
    endpoint: z
      .string()
      .regex(/^(?:https?:\/\/\S+)?$/, 'Write an address, e.g. http://localhost:4318/v1/traces')
      .default('')
      .describe('Send spans to this address as OTLP over HTTP. Empty: off.'),
    headers: z
      .record(z.string(), secret())
      .default({})
      .describe('Headers to send, e.g. Authorization.'),
    serviceName: z
      .string()
      .min(1)
      .max(100)
      .default('nanobot')
      .describe('Service name to show there.'),
  }),
});
