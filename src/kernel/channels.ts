// The channels that run, by account: written by the channel manager, read by everybody else. It exists before
// any of them and is empty until they start.

import type { Channel, ChannelStatus } from '../channels/channel.ts';
import type { AccountName } from './message/account.ts';

export interface ChannelDirectory {
  get(name: AccountName): Channel | undefined;
  status(name: AccountName): ChannelStatus | undefined;
  /** Carries messages now. */
  isRunning(name: AccountName): boolean;
  /** Carries messages now or soon: it was started, and no person has to act first. */
  isThere(name: AccountName): boolean;
}

/** What the manager writes. */
export interface ChannelRegister extends ChannelDirectory {
  put(name: AccountName, channel: Channel): void;
  report(name: AccountName, status: ChannelStatus): void;
  remove(name: AccountName): void;
}

export function createChannelDirectory(): ChannelRegister {
  const channels = new Map<AccountName, Channel>();
  const statuses = new Map<AccountName, ChannelStatus>();
  return {
    get: (name) => channels.get(name),
    status: (name) => statuses.get(name),
    isRunning: (name) => statuses.get(name)?.kind === 'running',
    isThere: (name) => (statuses.get(name)?.kind ?? 'stopped') !== 'stopped',
    put: (name, channel) => void channels.set(name, channel),
    report: (name, status) => void statuses.set(name, status),
    remove(name) {
      channels.delete(name);
      statuses.delete(name);
    },
  };
}
