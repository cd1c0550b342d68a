// One account of a channel, and the names it goes by: in rows and words, and in the configuration.

import {
  type AccountId,
  accountId,
  type Branded,
  type ChannelName,
  channelName,
  DEFAULT_ACCOUNT,
} from './ids.ts';

export type AccountRef = { readonly channel: ChannelName; readonly account: AccountId };

/** `email@work`; that of the default account is the channel's alone: `email`. */
export type AccountName = ChannelName | Branded<'AccountName'>;

export function accountName({ channel, account }: AccountRef): AccountName {
  return account === DEFAULT_ACCOUNT ? channel : (`${channel}@${account}` as AccountName);
}

/** The same for a channel that runs. */
export function accountNameOf(running: {
  readonly name: ChannelName;
  readonly account: AccountId;
}): AccountName {
  return accountName({ channel: running.name, account: running.account });
}

/** The account a name stands for, whether or not there is one. */
export function accountOf(name: string): AccountRef {
  const [channel = '', account] = name.split('@');
  return {
    channel: channelName(channel),
    account: account === undefined ? DEFAULT_ACCOUNT : accountId(account),
  };
}

/** Where its settings stand: `channels.email`, or `channels.email.accounts.work`. */
export function accountPath({ channel, account }: AccountRef): string {
  const further = account === DEFAULT_ACCOUNT ? '' : `.accounts.${account}`;
  return `channels.${channel}${further}`;
}
