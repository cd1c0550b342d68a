// Which channels may have several accounts, and the configuration as each of them sees it: its own
// settings stand where those of the channel stand, so that nobody who reads them knows of the others.

import { mailboxesOf } from '../../channels/email/settings.ts';
import { type AccountId, DEFAULT_ACCOUNT } from '../message/ids.ts';
import type { Config } from './config.ts';

type ChannelsConfig = Config['channels'];

/** By account, the default one first. */
type AccountViews = ReadonlyMap<AccountId, ChannelsConfig>;

const SEVERAL: Readonly<Record<string, (channels: ChannelsConfig) => AccountViews>> = {
  email: (channels) =>
    new Map([...mailboxesOf(channels.email)].map(([id, email]) => [id, { ...channels, email }])),
};

export const mayHaveSeveral = (channel: string) => Object.hasOwn(SEVERAL, channel);

export function accountViews(channels: ChannelsConfig, channel: string): AccountViews {
  return SEVERAL[channel]?.(channels) ?? new Map([[DEFAULT_ACCOUNT, channels]]);
}
