// The way out: an answer as WhatsApp messages, part by part, each under an id of ours that is the
// same on every try, in the account's pace, and counted as sent when the server says so. Also serves
// phones that ask for a message again.

import type { proto, WAMessageKey } from '@whiskeysockets/baileys';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { DeliveryError, FORBIDDEN, NEVER } from '../../kernel/message/errors.ts';
import { type ChatId, type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import type { ChannelHost, Editing, Reactions, Retracting, Typing } from '../channel.ts';
import { contentOfUnit, createEdits, type Edits, type Unit, unitsOf } from './drafts.ts';
import {
  createReactions,
  createReadReceipts,
  createTypingNotices,
  type MarkRead,
  type TakeUnread,
  type TypingNotices,
} from './notices.ts';
import { createPacer, type Pacer, textName } from './pacer.ts';
import { isPerson, isSameAddress, type PersonJid, parseJid } from './rules/jid.ts';
import {
  type AckSource,
  createAcks,
  createSentMessages,
  type SentMessages,
  sentId,
} from './sent-messages.ts';
import type { WhatsAppConfig } from './settings.ts';
import { createTransmitter, type OpenLink, type Transmitter } from './transmit.ts';

/** What is asked of the people this account knows. */
export type Addressees = {
  /** Where an answer in this chat goes; undefined for a name that is nobody's. */
  addressOf(chat: ChatId): Promise<string | undefined>;
  hasWritten(chat: ChatId): Promise<boolean>;
  /** All names of the conversation. */
  namesOf(chat: ChatId): Promise<readonly ChatId[]>;
  meet(meeting: { readonly address: PersonJid; readonly role: 'seen' }): Promise<{
    readonly chat: ChatId;
  }>;
};

export type OutboxDeps = {
  readonly link: OpenLink;
  readonly people: Addressees;
  /** The owner answers in this chat by hand. */
  isPaused(chat: ChatId): Promise<boolean>;
  readonly unread: TakeUnread;
  readonly settings: WhatsAppConfig;
  readonly host: Pick<ChannelHost, 'state' | 'media' | 'clock' | 'log'>;
  /** 0 to 1. */
  readonly random: () => number;
};

export interface Outbox {
  /** @throws DeliveryError */
  send(message: OutboundMessage, context: SendContext): Promise<Receipt>;
  readonly edits: Editing & Retracting;
  readonly reactions: Pick<Reactions, 'react'>;
  readonly typing: Typing;
  /** What a phone of this chat asks for again; undefined for everybody else. */
  getMessage(key: WAMessageKey): Promise<proto.IMessage | undefined>;
  /** Whether we sent the message of this WhatsApp id. */
  isOurs(id: string): Promise<boolean>;
  /** To be called with each new socket; disposed when its connection is over. */
  attach(socket: AckSource): Disposable;
}

export function createOutbox(deps: OutboxDeps): Outbox {
  const { link, people, settings, random } = deps;
  const { state, clock, log } = deps.host;
  const sent = createSentMessages({ state, clock });
  const acks = createAcks((id) => {
    sent.taken(id).catch((error) => log.warn('whatsapp ack not stored', { error }));
  });
  const transmitter = createTransmitter({ link, acks, sent, clock });
  const pacer = createPacer({ state, clock, limits: settings.pacing, random });
  const isWanted = settings.readReceipts;
  const markRead = createReadReceipts({ link, unread: deps.unread, isWanted, clock, log });
  const { addressOf } = people;
  const notices = createTypingNotices({ ...deps, link, addressOf, markRead, clock, log });
  const admit = async (chat: ChatId) => (await requireOpenChat(chat, deps)).jid;
  const edits = createEdits({ transmitter, sent, pacer, clock, random, admit });
  const parts = { ...deps, transmitter, pacer, edits, notices, markRead };
  return {
    send: (message, context) => sendParts(message, context, parts),
    edits,
    reactions: createReactions({ transmitter, sent, pacer, admit, addressOf }),
    typing: notices,
    attach: (socket) => acks.attach(socket),
    isOurs: async (id) => (await sent.get(id)) !== undefined,
    getMessage: (key) => askedAgain(key, sent, deps),
  };
}

type PartsDeps = OutboxDeps & {
  readonly transmitter: Transmitter;
  readonly pacer: Pacer;
  readonly edits: Edits;
  readonly notices: TypingNotices;
  readonly markRead: MarkRead;
};

async function sendParts(
  message: OutboundMessage,
  context: SendContext,
  deps: PartsDeps,
): Promise<Receipt> {
  const { signal, draft } = context;
  const units = unitsOf(message);
  const ids: NativeId[] = [...context.sentParts];
  for (const [index, unit] of units.entries()) {
    if (index < context.sentParts.length) continue;
    const id = await sendPart(message, { index, unit }, context, deps);
    await context.partSent(id);
    ids.push(id);
  }
  if (draft !== undefined && !ids.includes(draft)) await removeDraft(message, draft, signal, deps);
  return { nativeIds: ids };
}

async function sendPart(
  message: OutboundMessage,
  { index, unit }: { readonly index: number; readonly unit: Unit },
  { signal, draft }: SendContext,
  deps: PartsDeps,
): Promise<NativeId> {
  const { transmitter, notices } = deps;
  const { chat } = message.chat;
  const { jid, isFirstContact } = await requireOpenChat(chat, deps);
  const content = await contentOfUnit(unit, deps.host.media);
  await transmitter.ready(signal);
  if (index === 0) await deps.markRead(chat, signal);
  const paced = {
    chat,
    isFirstContact,
    isAnswer: message.replyTo !== undefined,
    ...(index === 0 && unit.kind === 'text' ? { text: textName(message.markdown) } : {}),
  };
  try {
    const rows = await deps.pacer.admit(paced, signal, () => notices.composing(jid, signal));
    // The owner may have begun to write while it waited.
    await requireUnpaused(chat, deps);
    if (index === 0 && draft !== undefined && unit.kind === 'text') {
      const final = { draft, message: message.id, chat, text: unit.text, rows };
      if (await deps.edits.finish(final, signal)) return draft;
    }
    const id = sentId(message.id, index);
    await transmitter.send({ id, chat, jid, content, rows }, signal);
    return nativeId(id);
  } finally {
    await notices.done(jid, signal);
  }
}

/** The final text stands in messages of its own; a draft left behind is half of it once more. */
async function removeDraft(
  message: OutboundMessage,
  draft: NativeId,
  signal: AbortSignal,
  { edits, host }: PartsDeps,
): Promise<void> {
  try {
    await edits.remove(message.chat, draft, signal);
  } catch (error) {
    host.log.info('whatsapp draft not removed', { messageId: message.id, error });
  }
}

type OpenChat = { readonly jid: string; readonly isFirstContact: boolean };

/** @throws DeliveryError not_sent for a chat that the agent must not write to */
async function requireOpenChat(chat: ChatId, deps: OutboxDeps): Promise<OpenChat> {
  const { people, settings } = deps;
  const jid = await people.addressOf(chat);
  if (jid === undefined) throw refused('no person or group has this name', 'whatsapp_unknown_chat');
  await requireUnpaused(chat, deps);
  // The owner brought the account into its groups.
  const isOwners = isOwn(jid, deps.link) || parseJid(jid).kind === 'group';
  if (isOwners || (await people.hasWritten(chat))) return { jid, isFirstContact: false };
  const remedy = firstContactRemedy(settings);
  if (remedy === undefined) return { jid, isFirstContact: true };
  throw refused(`this person never wrote to the account; ${remedy}`, 'whatsapp_first_contact');
}

async function requireUnpaused(chat: ChatId, { isPaused }: OutboxDeps): Promise<void> {
  if (!(await isPaused(chat))) return;
  throw new DeliveryError('the owner of the account answers in this chat by hand', {
    certainty: 'not_sent',
    remedy: FORBIDDEN,
    code: 'whatsapp_paused',
  });
}

function firstContactRemedy({ firstContact, pacing }: WhatsAppConfig): string | undefined {
  if (!firstContact) return 'channels.whatsapp.firstContact allows to write first';
  if (pacing.firstContactsPerDay > 0) return undefined;
  return 'channels.whatsapp.pacing.firstContactsPerDay is 0';
}

const isOwn = (jid: string, { socket }: OpenLink) =>
  [socket?.user?.id, socket?.user?.lid].some((own) => isSameAddress(own, jid));

/** Ids can be guessed by whoever knows how they are made: a message is given to its chat only. */
async function askedAgain(
  key: WAMessageKey,
  sent: SentMessages,
  { people, link, host }: OutboxDeps,
): Promise<proto.IMessage | undefined> {
  const row = key.id ? await sent.get(key.id) : undefined;
  if (row === undefined) return undefined;
  const jid = parseJid(key.remoteJid);
  const address = key.remoteJid ?? '';
  if (isSameAddress(address, row.jid)) return row.message;
  if (isOwn(address, link) && isOwn(row.jid, link)) return row.message;
  if (isPerson(jid)) {
    const { chat } = await people.meet({ address: jid, role: 'seen' });
    if ((await people.namesOf(row.chat)).includes(chat)) return row.message;
  }
  host.log.warn('whatsapp message asked for by another chat', { id: key.id });
  return undefined;
}

const refused = (message: string, code: string) =>
  new DeliveryError(message, { certainty: 'not_sent', remedy: NEVER, code });
