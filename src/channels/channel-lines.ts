// The state of each channel as text: as the running gateway reports it, or as configured when no
// gateway runs.

import { z } from 'zod';
import { spanText } from '../cli/flag-values.ts';
import type { Config } from '../kernel/config/config.ts';
import { askGateway, type RunningGateway } from '../kernel/home-state.ts';
import { t } from '../lib/texts.ts';
import { configuredAccounts, howToEnable } from './index.ts';

const channelStatusSchema = z.object({
  kind: z.enum(['off', 'starting', 'running', 'elsewhere', 'degraded', 'stopped', 'unknown']),
  activeAt: z.number().optional(),
  account: z.string().optional(),
  reason: z.string().optional(),
  remedy: z.string().optional(),
  retryAt: z.number().optional(),
});

/** The part of the bodies of `/readyz` and `/api/status` that is read here. */
export const channelsSchema = z.object({
  channels: z.array(
    z.object({ name: z.string(), status: channelStatusSchema, waiting: z.string().optional() }),
  ),
});

type ReportedStatus = z.infer<typeof channelStatusSchema>;

/** `waiting`: what a limit holds back, and why. */
export function channelLine(
  { status, waiting }: { readonly status: ReportedStatus; readonly waiting?: string | undefined },
  now: number,
): string {
  const line = statusLine(status, now);
  return waiting === undefined ? line : `${line}; ${waiting}`;
}

export function statusLine(status: ReportedStatus, now: number): string {
  const account = status.account === undefined ? '' : t` as ${status.account}`;
  switch (status.kind) {
    case 'off':
      return t`off. ${status.remedy ?? ''}`.trim();
    case 'starting':
      return 'starting';
    case 'elsewhere':
      return t`run by another process (nanobot nodes)`;
    case 'running':
      return `on${account}${status.activeAt === undefined ? '' : t`, last active ${spanText(now - status.activeAt)} ago`}`;
    case 'degraded':
      return `retrying${soon(status, now)}: ${status.reason ?? t`unknown reason`}`;
    case 'unknown':
      return t`not known: ${status.reason ?? ''}`;
    case 'stopped':
      return t`stopped: ${status.reason ?? t`unknown reason`}. ${status.remedy ?? ''}`.trim();
  }
}

function soon({ retryAt }: ReportedStatus, now: number): string {
  return retryAt === undefined || retryAt <= now ? '' : t` in ${spanText(retryAt - now)}`;
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
    const answer = channelsSchema.safeParse(
      await askGateway(running, '/readyz', config.gateway.token),
    );
    if (answer.success) return answer.data.channels;
  }
  // As configured.
  const reason =
    running === undefined ? t`the gateway is not running` : t`the gateway does not answer`;
  return configuredAccounts(config.channels).map((account) => {
    const { name, isEnabled } = account;
    if (!isEnabled) return { name, status: { kind: 'off', remedy: howToEnable(account) } };
    const kind = running === undefined ? 'stopped' : 'unknown';
    return { name, status: { kind, reason, remedy: '' } };
  });
}
