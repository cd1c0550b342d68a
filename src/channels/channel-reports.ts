// How each account fares, as the gateway says it of itself.

import type { ChannelReport } from '../app/gateway.ts';
import type { ChannelDirectory } from '../kernel/channels.ts';
import { DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import { type ConfiguredAccount, configuredAccounts } from './accounts.ts';
import type { ChannelsConfig } from './index.ts';

export function channelReports(
  channels: ChannelsConfig,
  running: ChannelDirectory,
): readonly ChannelReport[] {
  return configuredAccounts(channels).map((account) => {
    const { name, label, isEnabled } = account;
    if (!isEnabled) {
      const status = { kind: 'off', remedy: howToEnable(account) } as const;
      return { name, label, enabled: false, status, canLogIn: false };
    }
    const status = running.status(name) ?? { kind: 'starting' };
    const channel = running.get(name);
    const canLogIn = channel?.login !== undefined;
    const waiting = channel?.waiting?.();
    const held = waiting === undefined ? {} : { waiting };
    return { name, label, enabled: true, status, ...held, canLogIn };
  });
}

/** For a chat. */
export function reportLine({ name, status, waiting }: ChannelReport): string {
  const isInTrouble = status.kind === 'stopped' || status.kind === 'degraded';
  const held = waiting === undefined ? '' : `, ${waiting}`;
  return `${name}: ${status.kind}${isInTrouble ? `, ${status.reason}` : ''}${held}`;
}

export const howToEnable = (account: ConfiguredAccount) =>
  `Turn it on with: ${howToLogIn(account)}`;

export function howToLogIn({ definition, account }: ConfiguredAccount): string {
  const which = account === DEFAULT_ACCOUNT ? '' : ` --account ${account}`;
  return `${definition.howToEnable}${which}`;
}
