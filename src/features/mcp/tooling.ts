// What a running gateway reports about its tools: the tool servers, and the tools that cannot run.

import { z } from 'zod';
import { spanText } from '../../cli/flag-values.ts';
import { askGateway, type RunningGateway } from '../../kernel/home-state.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { ToolServerReport } from './tool-server.ts';

const serverSchema = z.object({
  name: z.string(),
  transport: z.enum(['stdio', 'http']),
  state: z.object({
    kind: z.enum(['starting', 'connected', 'login', 'lost', 'failed']),
    since: z.number().optional(),
    reason: z.string().optional(),
    retryAt: z.number().optional(),
  }),
  tools: z.array(z.string()).readonly(),
});

const toolingSchema = z.object({
  tooling: z.object({
    servers: z.array(serverSchema).readonly(),
    missing: z.array(z.object({ name: z.string(), reason: z.string() })).readonly(),
  }),
});

export type ReportedToolServer = z.infer<typeof serverSchema>;
type ReportedTooling = z.infer<typeof toolingSchema>['tooling'];

/** For /status, each as `Label: text`. */
export function toolingLines(
  { servers, missing }: ReportedTooling,
  now: number,
): readonly string[] {
  return [
    ...servers.map((server) => t`mcp ${server.name}: ${toolServerLine(server, now)}`),
    ...missing.map(({ name, reason }) => t`${name}: not available (${reason})`),
  ];
}

/** Undefined where no gateway responds. */
export async function reportTooling(
  running: RunningGateway | undefined,
  token: string,
): Promise<ReportedTooling | undefined> {
  if (running === undefined) return undefined;
  return toolingIn(await askGateway(running, '/api/status', token));
}

/** Parses the body of /api/status. */
export const toolingIn = (status: unknown): ReportedTooling | undefined =>
  toolingSchema.safeParse(status).data?.tooling;

/** The state for a page, which has buttons for what is to be done. */
export function stateText(server: ToolServerReport | undefined, now: number): string {
  if (server === undefined) return t`not started yet`;
  if (server.state.kind === 'login') return t`needs a login`;
  return toolServerLine({ ...server, tools: [...server.tools] }, now);
}

export function toolServerLine({ name, state, tools }: ReportedToolServer, now: number): string {
  const reason = state.reason ?? t`unknown reason`;
  switch (state.kind) {
    case 'starting':
      return 'starting';
    case 'connected':
      return ngettext(
        msgid`connected, ${tools.length} tool`,
        `connected, ${tools.length} tools`,
        tools.length,
      );
    case 'login':
      return t`needs a login; send /mcp login ${name}, or run: nanobot mcp login ${name}`;
    case 'lost':
      return t`reconnecting: ${reason}`;
    case 'failed': {
      const again = state.retryAt === undefined ? 0 : state.retryAt - now;
      return t`not connected: ${reason}${again > 0 ? t`; retrying in ${spanText(again)}` : ''}`;
    }
  }
}
