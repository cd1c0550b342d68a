// Which conversation a chat takes part in, and where a conversation is answered. A chat has its own
// unless its person moved another one there or shares one on all channels. Stored on disk, read
// from memory.

import {
  accountsOf,
  CHANNELS,
  type ChannelDefinition,
  configuredAccount,
} from '../../channels/index.ts';
import { createLocalChannel } from '../../channels/web/durable-channel.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ConfiguredGate } from '../access/admission.ts';
import { parseCommand } from '../access/admission.ts';
import { isSameChat, type PersonRecord, personChannelOf } from '../access/person.ts';
import type { Config } from '../config/config.ts';
import {
  type AccountId,
  accountName,
  accountOf,
  channelName,
  type SessionKey,
} from '../message/ids.ts';
import { type ChatRef, chatRefOf, type InboundMessage, sessionKeyOf } from '../message/message.ts';
import type { Move, PeopleRows } from '../people/people-rows.ts';
import type { Persons } from '../people/persons.ts';

type RoutesDeps = {
  readonly peopleRows: Pick<PeopleRows, 'routes' | 'moves' | 'write'>;
  readonly persons: Pick<Persons, 'author' | 'inChat'>;
};

export type Routes = ReturnType<typeof createRoutes>;

export function createRoutes({ peopleRows, persons }: RoutesDeps) {
  const { routes, moves } = peopleRows;

  async function targetOf(own: SessionKey, person: PersonRecord): Promise<SessionKey> {
    if (person.conversations === 'shared' && person.session !== undefined) return person.session;
    const target = (await routes.get(own))?.session;
    const channel = target === undefined ? undefined : chatRefOf(target)?.channel;
    // An unlinked channel takes its conversation along.
    const isTheirs = channel !== undefined && personChannelOf(person, channel) !== undefined;
    return target !== undefined && isTheirs ? target : own;
  }

  /** A person who writes in another chat is answered there from then on. */
  async function settle(session: SessionKey, message: InboundMessage) {
    const move = await moves.get(session);
    if (move === undefined || message.receivedAt <= move.at) return;
    if (isSameChat(move.to, message.chat)) return;
    await peopleRows.write([moves.write(session, undefined)]);
  }

  return {
    /** The message with its conversation. `/new` in a moved one gives the chat its own back. */
    async route(message: InboundMessage): Promise<InboundMessage> {
      const { sender, chat, addressing, text } = message;
      if (sender.kind !== 'person') return message;
      if (addressing !== 'direct' || sender.verified === 'unverified') return message;
      const own = sessionKeyOf(chat);
      const person = await persons.author(message);
      const session = person === undefined ? own : await targetOf(own, person);
      if (parseCommand(text) === undefined) await settle(session, message);
      if (session === own) return message;
      if (parseCommand(text)?.name === 'new' && (await routes.get(own)) !== undefined) {
        await peopleRows.write([routes.write(own, undefined)]);
        return message;
      }
      return { ...message, session };
    },
    async sessionOf(chat: ChatRef): Promise<SessionKey> {
      const own = sessionKeyOf(chat);
      const person = await persons.inChat(chat);
      return person === undefined ? own : targetOf(own, person);
    },
    /** The chat for answers of a conversation with this newest message. */
    async answersTo(session: SessionKey, newest: InboundMessage): Promise<ChatRef> {
      const move = await moves.get(session);
      if (move === undefined) return newest.chat;
      const isLater = newest.sender.kind === 'person' && newest.receivedAt > move.at;
      return isLater ? newest.chat : move.to;
    },
    /** Earlier questions are answered in the other chat, which takes part from now on. */
    async move(session: SessionKey, move: Move): Promise<void> {
      const own = sessionKeyOf(move.to);
      const route = routes.write(own, own === session ? undefined : { session });
      await peopleRows.write([route, moves.write(session, move)]);
    },
  };
}

/** Whether a turn is shown and answered in this chat, as long as the conversation is not moved. */
export const isAnsweredIn = async (
  routes: Pick<Routes, 'answersTo'>,
  session: SessionKey,
  newest: InboundMessage,
  chat: ChatRef,
) => isSameChat(await routes.answersTo(session, newest), chat);

// The local channels, open to holders of the gateway's token or of a login of the page, and the
// admission policy of each platform channel.

/** The sender id on a local channel. */
const LOCAL_USER = 'owner';

export type LocalChannels = {
  readonly web: ReturnType<typeof createLocalChannel>;
  readonly terminal: ReturnType<typeof createLocalChannel>;
};

/** `maxFileBytes`: the largest file that the page may upload. */
export function createLocalChannels(clock: Clock, maxFileBytes: () => number): LocalChannels {
  return {
    web: createLocalChannel({
      name: channelName('web'),
      coalesces: true,
      choices: 'buttons',
      maxFileBytes,
      clock,
    }),
    terminal: createLocalChannel({ name: channelName('terminal'), coalesces: false, clock }),
  };
}

const LOCAL_CHANNEL = {
  allowFrom: [],
  owners: [LOCAL_USER],
  acceptUnverified: false,
  strangers: 'closed',
  medium: 'chat',
  bridge: 'off',
} as const;

/** Lets nobody in: for an account that is no longer configured. */
const CLOSED = { ...LOCAL_CHANNEL, owners: [] };

/** By the name of an account. */
export function policyOf(
  account: string,
  { channels }: Config,
): ReturnType<ChannelDefinition['policy']> {
  const configured = configuredAccount(account, channels);
  if (configured !== undefined) return configured.definition.policy(configured.config);
  const { channel } = accountOf(account);
  const first = CHANNELS.find(({ name }) => name === channel)?.policy(channels);
  return first === undefined ? LOCAL_CHANNEL : { ...CLOSED, medium: first.medium };
}

/** The gates of one configuration: they are asked for several times per message. */
export function createGates(config: Config) {
  const known = new Map<string, ConfiguredGate>();
  return (channel: string, account?: AccountId): ConfiguredGate => {
    const name = `${channel}:${account ?? ''}`;
    const gate = known.get(name) ?? gateOf(channel, config, account);
    known.set(name, gate);
    return gate;
  };
}

/** Without an account: the widest policy of the channel's accounts. */
export function gateOf(channel: string, config: Config, account?: AccountId): ConfiguredGate {
  if (account !== undefined) {
    return policyOf(accountName({ channel: channelName(channel), account }), config);
  }
  const definition = CHANNELS.find(({ name }) => name === channel);
  if (definition === undefined) return LOCAL_CHANNEL;
  const gates = accountsOf(definition, config.channels).map(({ config }) =>
    definition.policy(config),
  );
  const isOpen = gates.some(({ strangers }) => strangers === 'open');
  return {
    allowFrom: gates.flatMap(({ allowFrom }) => allowFrom),
    owners: gates.flatMap(({ owners }) => owners),
    strangers: isOpen ? 'open' : 'closed',
  };
}
