// The channels as the running gateway reports them, or as configured without one, and their state as
// text.

import { z } from 'zod';
import { howToEnable } from '../channels/configured-channels.ts';
import { configuredAccounts } from '../channels/index.ts';
import type { Config } from '../kernel/config/config.ts';
import { askGateway, type RunningGateway } from '../kernel/running-gateway.ts';
import { spanText } from './flag-values.ts';

const channelStatusSchema = z.object({
  kind: z.enum(['off', 'starting', 'running', 'degraded', 'stopped']),
  activeAt: z.number().optional(),
  account: z.string().optional(),
  reason: z.string().optional(),
  remedy: z.string().optional(),
  retryAt: z.number().optional(),
});

/** The body of `/readyz`. */
export const readinessSchema = z.object({
  channels: z.array(
    z.object({ name: z.string(), status: channelStatusSchema, waiting: z.string().optional() }),
  ),
});

type ReportedStatus = z.infer<typeof channelStatusSchema>;

/** `waiting`: what a limit holds back and why. */
export function channelLine(
  { status, waiting }: { readonly status: ReportedStatus; readonly waiting?: string | undefined },
  now: number,
): string {
  const line = statusLine(status, now);
  return waiting === undefined ? line : `${line}; ${waiting}`;
}

export function statusLine(status: ReportedStatus, now: number): string {
  const account = status.account === undefined ? '' : ` as ${status.account}`;
  switch (status.kind) {
    case 'off':
      return `off. ${status.remedy ?? ''}`.trim();
    case 'starting':
      return 'starting';
    case 'running':
      return `on${account}${status.activeAt === undefined ? '' : `, heard ${spanText(now - status.activeAt)} ago`}`;
    case 'degraded':
      return `trying again${soon(status, now)}: ${status.reason ?? 'no reason given'}`;
    case 'stopped':
      return `stopped: ${status.reason ?? 'no reason given'}. ${status.remedy ?? ''}`.trim();
  }
}

function soon({ retryAt }: ReportedStatus, now: number): string {
  return retryAt === undefined || retryAt <= now ? '' : ` in ${spanText(retryAt - now)}`;
}

export type ReportedChannel = {
  readonly name: string;
  readonly status: ReportedStatus;
  readonly waiting?: string | undefined;
};

export async function reportChannels(
  config: Config,
  running: RunningGateway | undefined,
): Promise<readonly ReportedChannel[]> {
  if (running?.address !== undefined) {
    const answer = readinessSchema.safeParse(
      await askGateway(running, '/readyz', config.gateway.token),
    );
    if (answer.success) return answer.data.channels;
  }
  return configuredAccounts(config.channels).map((account) => {
    const { name, isEnabled } = account;
    if (!isEnabled) return { name, status: { kind: 'off', remedy: howToEnable(account) } };
    return { name, status: { kind: 'stopped', reason: 'the gateway does not run', remedy: '' } };
  });
}
