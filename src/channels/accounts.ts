// The accounts that the configuration names, each with the channel it belongs to and the configuration
// as it sees it. What is done with them is the gateway's.

import { accountViews } from '../kernel/config/accounts.ts';
import {
  type AccountName,
  type AccountRef,
  accountName,
  accountOf,
} from '../kernel/message/account.ts';
import { type AccountId, channelName, DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import { rememberedFor } from '../lib/async.ts';
import type { Channel } from './channel.ts';
import {
  CHANNELS,
  type ChannelDefinition,
  type ChannelDeps,
  type ChannelsConfig,
} from './index.ts';

export type ConfiguredAccount = AccountRef & {
  readonly definition: ChannelDefinition;
  readonly name: AccountName;
  /** As people write it. */
  readonly label: string;
  /** As the account sees it. */
  readonly config: ChannelsConfig;
  readonly isEnabled: boolean;
};

/** Of every channel, the default account first. */
export function configuredAccounts(channels: ChannelsConfig): readonly ConfiguredAccount[] {
  return CHANNELS.flatMap((definition) => accountsOf(definition, channels));
}

/** Undefined where the configuration names no such account. */
export function configuredAccount(
  name: string,
  channels: ChannelsConfig,
): ConfiguredAccount | undefined {
  const { channel } = accountOf(name);
  const definition = CHANNELS.find((each) => each.name === channel);
  if (definition === undefined) return undefined;
  return accountsOf(definition, channels).find((account) => account.name === name);
}

export function accountsOf(
  definition: ChannelDefinition,
  channels: ChannelsConfig,
): readonly ConfiguredAccount[] {
  const channel = channelName(definition.name);
  return [...accountViews(channels, definition.name)].map(([account, config]) => ({
    ...{ channel, account, definition, config },
    name: accountName({ channel, account }),
    label: labelOf(definition, account),
    isEnabled: definition.isEnabled(config),
  }));
}

/** The channel of the account; what counts without a new start it reads of `current`. */
export function createAccount(
  { definition, account, name, config }: ConfiguredAccount,
  parts: Pick<ChannelDeps, 'clock' | 'random'> & { current(): ChannelsConfig },
): Promise<Channel> {
  // Both are asked several times a message, and change with the configuration only.
  const own = rememberedFor(
    (channels: ChannelsConfig) => configuredAccount(name, channels)?.config,
  );
  const all = rememberedFor((channels: ChannelsConfig) =>
    accountsOf(definition, channels).map((each) => each.config),
  );
  return definition.create(config, {
    ...parts,
    account,
    current: () => own(parts.current()) ?? config,
    everywhere: () => all(parts.current()),
  });
}

const labelOf = ({ label }: ChannelDefinition, account: AccountId) =>
  account === DEFAULT_ACCOUNT ? label : `${label} (${account})`;
