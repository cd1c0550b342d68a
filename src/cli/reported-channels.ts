// The channels as the running gateway reports them; without one, as the configuration has them.

import { askGateway, type RunningGateway } from '../app/running-gateway.ts';
import { configuredAccounts } from '../channels/accounts.ts';
import { howToEnable } from '../channels/channel-reports.ts';
import type { Config } from '../kernel/config/config.ts';
import { type ReportedStatus, readinessSchema } from './channel-lines.ts';

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
