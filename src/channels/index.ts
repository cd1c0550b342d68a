// The registry of the platform channels, and the accounts that the configuration names. To add a
// channel, add a folder and an entry here. Its code is imported when it is on, so that a channel
// that is off costs no start-up time and no memory.

import {
  EVERYBODY,
  type GroupPolicy,
  type UnknownSenderPolicy,
} from '../kernel/access/admission.ts';
import type { Medium } from '../kernel/access/rights.ts';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import type { Config } from '../kernel/config/config.ts';
import { accountViews } from '../kernel/config/config.ts';
import {
  type AccountId,
  type AccountName,
  type AccountRef,
  accountName,
  accountOf,
  channelName,
  DEFAULT_ACCOUNT,
} from '../kernel/message/ids.ts';
import type { Holds } from '../kernel/sessions/rules/forgetting.ts';
import { rememberedFor } from '../lib/async.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Channel } from './channel.ts';
import { addressesOf, type BridgeMode } from './email/settings.ts';
import { isAllowEntry, normaliseAllowed, SELF } from './whatsapp/rules/jid.ts';

export const howToEnable = (account: ConfiguredAccount) =>
  t`Turn it on with: ${howToLogIn(account)}`;

export function howToLogIn({ definition, account }: ConfiguredAccount): string {
  const which = account === DEFAULT_ACCOUNT ? '' : t` --account ${account}`;
  return t`nanobot channels login ${definition.name}${which}`;
}

export type ChannelsConfig = Config['channels'];

type ChannelDeps = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly account: AccountId;
  /** The current configuration of this account, for settings that apply without a restart. */
  current(): ChannelsConfig;
  /** The same for every account of the channel, including this one. */
  everywhere(): readonly ChannelsConfig[];
};

/** `config` is always the configuration as one account sees it, see kernel/config/accounts.ts. */
export type ChannelDefinition = {
  readonly name: string;
  /** As shown to people. */
  readonly label: string;
  isEnabled(config: ChannelsConfig): boolean;
  /** The configured part of admission. */
  policy(config: ChannelsConfig): {
    readonly allowFrom: readonly string[];
    /** Ids of the person who linked the account. */
    readonly owners: readonly string[];
    readonly acceptUnverified: boolean;
    readonly groups?: GroupPolicy;
    readonly strangers: UnknownSenderPolicy;
    readonly medium: Medium;
    /** Whose messages the owner answers; absent: nobody's. */
    readonly bridge?: BridgeMode;
  };
  /** The addresses of the account, its own first. */
  addresses?(config: ChannelsConfig): readonly string[];
  create(config: ChannelsConfig, deps: ChannelDeps): Promise<Channel>;
  /** A person's id in the channel's spelling, or why the input cannot be an id there. */
  personId(typed: string): string | { readonly problem: string };
  /** Erases what the channel stores of a chat with the words; returns how much. Repeatable. */
  erase?(state: KeyValueStore, chat: string, holds: Holds): Promise<number>;
  /** The service disconnects it if a copy of its keys is used elsewhere: it runs in one home only. */
  readonly isSingle?: boolean;
};

type ChatSettings = Pick<
  ChannelsConfig['telegram'],
  'allowFrom' | 'strangers' | 'groups' | 'groupAllow' | 'groupNames'
> & { readonly groupSenderChats?: readonly string[] };

const chatPolicy = ({ allowFrom, strangers, groupSenderChats = [], ...group }: ChatSettings) =>
  ({
    allowFrom,
    owners: [],
    acceptUnverified: false,
    groups: {
      listed: group.groups,
      allow: group.groupAllow,
      names: group.groupNames,
      speakAs: groupSenderChats,
    },
    strangers,
    medium: 'chat',
  }) as const;

export const CHANNELS: readonly ChannelDefinition[] = [
  {
    name: 'telegram',
    label: 'Telegram',
    isEnabled: ({ telegram }) => telegram.enabled,
    policy: ({ telegram }) => chatPolicy(telegram),
    async create({ telegram }, deps) {
      const { createTelegramChannel } = await import('./telegram/telegram.ts');
      return createTelegramChannel(telegram, deps);
    },
    personId: (typed) =>
      /^\d+$/.test(typed)
        ? typed
        : { problem: t`Telegram ids are numbers; names can change owners` },
  },
  {
    name: 'email',
    label: t`Email`,
    isEnabled: ({ email }) => email.enabled,
    policy: ({ email }) => ({
      allowFrom: email.allowFrom.map((address) => address.toLowerCase()),
      owners: [],
      acceptUnverified: email.acceptUnverified,
      strangers: email.strangers,
      medium: 'mail',
      bridge: email.bridge,
    }),
    addresses: ({ email }) => addressesOf(email),
    async create({ email }, { account, current, everywhere }) {
      const { createEmailChannel } = await import('./email/email.ts');
      return createEmailChannel(email, {
        account,
        allowFrom: () => current().email.allowFrom,
        ours: () => everywhere().flatMap((each) => addressesOf(each.email)),
      });
    },
    personId: (typed) =>
      /^[^\s@]+@[^\s@]+$/.test(typed)
        ? typed.toLowerCase()
        : { problem: t`give the email address` },
    async erase(state, chat, holds) {
      const { forgetMails } = await import('./email/mail-register.ts');
      return forgetMails(state, chat, holds);
    },
  },
  {
    name: 'whatsapp',
    label: 'WhatsApp',
    isEnabled: ({ whatsapp }) => whatsapp.enabled,
    policy: ({ whatsapp }) => ({
      ...chatPolicy(whatsapp),
      allowFrom: whatsapp.allowFrom.map(normaliseAllowed),
      owners: whatsapp.selfChat ? [SELF] : [],
    }),
    async create({ whatsapp }, deps) {
      const { createWhatsAppChannel } = await import('./whatsapp/whatsapp.ts');
      const allowFrom = () => deps.current().whatsapp.allowFrom;
      return createWhatsAppChannel(whatsapp, { random: deps.random, allowFrom });
    },
    personId: (typed) =>
      typed !== EVERYBODY && isAllowEntry(typed)
        ? normaliseAllowed(typed)
        : {
            problem: t`give the number with its country code, e.g. +491511234567, or the id from "pair list"`,
          },
    isSingle: true,
  },
  {
    name: 'lark',
    label: 'Lark',
    isEnabled: ({ lark }) => lark.enabled,
    policy: ({ lark }) => chatPolicy(lark),
    async create({ lark }, deps) {
      const { createLarkChannel } = await import('./lark/lark.ts');
      return createLarkChannel(lark, deps);
    },
    personId: (typed) =>
      /^o[un]_[0-9A-Za-z]+$/.test(typed)
        ? typed
        : { problem: t`Lark ids are an open_id (ou_...) or union_id (on_...)` },
  },
];

export type ConfiguredAccount = AccountRef & {
  readonly definition: ChannelDefinition;
  readonly name: AccountName;
  /** As shown to people. */
  readonly label: string;
  /** The configuration as the account sees it. */
  readonly config: ChannelsConfig;
  readonly isEnabled: boolean;
};

/** Of every channel, the default account first. */
export function configuredAccounts(channels: ChannelsConfig): readonly ConfiguredAccount[] {
  return CHANNELS.flatMap((definition) => accountsOf(definition, channels));
}

/** Labels of the enabled accounts that run in one home only. */
export const enabledOnce = (channels: ChannelsConfig): readonly string[] =>
  configuredAccounts(channels)
    .filter(({ definition, isEnabled }) => isEnabled && definition.isSingle === true)
    .map(({ label }) => label);

/** Undefined if the configuration names no such account. */
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

/** Creates the channel; it reads settings that apply without a restart from `current`. */
export function createAccount(
  { definition, account, name, config }: ConfiguredAccount,
  parts: Pick<ChannelDeps, 'clock' | 'random'> & { current(): ChannelsConfig },
): Promise<Channel> {
  // Both are read several times per message and change only with the configuration.
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
