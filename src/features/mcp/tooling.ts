// What a running gateway says of its tools: the servers it gets tools from, and the tools that cannot
// work.

import { z } from 'zod';
import { spanText } from '../../cli/flag-values.ts';
import { askGateway, type RunningGateway } from '../../kernel/running-gateway.ts';

const serverSchema = z.object({
  name: z.string(),
  transport: z.enum(['stdio', 'http']),
  state: z.object({
    kind: z.enum(['starting', 'connected', 'lost', 'failed']),
    since: z.number().optional(),
    reason: z.string().optional(),
    retryAt: z.number().optional(),
  }),
  tools: z.array(z.string()),
});

const toolingSchema = z.object({
  tooling: z.object({
    servers: z.array(serverSchema),
    missing: z.array(z.object({ name: z.string(), reason: z.string() })),
  }),
});

export type ReportedToolServer = z.infer<typeof serverSchema>;
export type ReportedTooling = z.infer<typeof toolingSchema>['tooling'];

/** Undefined where no gateway answers. */
export async function reportTooling(
  running: RunningGateway | undefined,
  token: string,
): Promise<ReportedTooling | undefined> {
  if (running === undefined) return undefined;
  const said = toolingSchema.safeParse(await askGateway(running, '/api/status', token));
  return said.data?.tooling;
}

export function toolServerLine({ state, tools }: ReportedToolServer, now: number): string {
  const reason = state.reason ?? 'no reason given';
  switch (state.kind) {
    case 'starting':
      return 'starting';
    case 'connected':
      return `connected, ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`;
    case 'lost':
      return `being reached again: ${reason}`;
    case 'failed': {
      const again = state.retryAt === undefined ? 0 : state.retryAt - now;
      return `not connected: ${reason}${again > 0 ? `; next try in ${spanText(again)}` : ''}`;
    }
  }
}
