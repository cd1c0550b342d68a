// Sends an answer as WhatsApp messages, part by part, each under the same id on every try, within
// the pacing limits, and counted as sent when the server acknowledges it; with typing notices, read
// receipts and reactions. Answers phones that request a message again.

import type { proto, WAMessageKey } from '@whiskeysockets/baileys';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { FORBIDDEN, NEVER, notSent } from '../../kernel/message/errors.ts';
import { type ChatId, type MessageId, type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../kernel/message/message.ts';
import { within } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost, Reactions } from '../channel.ts';
import type { Contexts } from './context.ts';
import {
  contentOfUnit,
  createEdits,
  type Edits,
  type EditsDeps,
  type Unit,
  unitsOf,
} from './drafts.ts';
import { answerTo, createPacer, type Pacer, textName } from './pacer.ts';
import type { People } from './people.ts';
import {
  isPerson,
  isSameAddress,
  parseJid,
  SELF_CHAT,
  type WhatsAppName,
  whatsappNameOf,
} from './rules/jid.ts';
import { createAcks, createSentMessages, type SentMessages, sentId } from './sent-messages.ts';
import type { WhatsAppConfig } from './settings.ts';
import { createTransmitter, type OpenLink, type Transmitter } from './transmit.ts';

type OutboxDeps = {
  readonly link: OpenLink;
  readonly people: Pick<People, 'addressOf' | 'hasWritten' | 'namesOf' | 'meet'>;
  readonly contexts: Pick<Contexts, 'of'>;
  /** Whether the owner answers in this chat by hand. */
  isPaused(chat: ChatId): Promise<boolean>;
  /** Takes the keys of messages of this chat that are not marked as read yet. */
  unread(chat: ChatId): Promise<readonly WAMessageKey[]>;
  readonly settings: WhatsAppConfig;
  readonly host: Pick<ChannelHost, 'state' | 'media' | 'clock' | 'log'>;
  /** 0 to 1. */
  readonly random: () => number;
};

export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox(deps: OutboxDeps) {
  const { link, people, contexts, settings, random } = deps;
  const { state, clock, log } = deps.host;
  const sent = createSentMessages({ state, clock });
  const taken = (id: string) => {
    sent.taken(id).catch((error) => log.warn('whatsapp ack not stored', { error }));
  };
  const acks = createAcks(taken);
  const transmitter = createTransmitter({ link, acks, sent, taken, clock });
  const pacer = createPacer({ state, clock, limits: settings.pacing, random });
  const courtesies = createCourtesies(deps);
  const admit = async (chat: ChatId) => (await requireOpenChat(chat, deps)).jid;
  const sending = { transmitter, sent, pacer, clock, random, admit, contexts };
  const edits = createEdits(sending);
  const parts = { ...deps, transmitter, pacer, edits, courtesies };
  return {
    /** @throws DeliveryError */
    send: (message: OutboundMessage, context: SendContext) => sendParts(message, context, parts),
    edits,
    reactions: createReactions(sending, people),
    typing: courtesies,
    /** Call with each new socket; disposed when its connection is over. */
    attach: acks.attach,
    /** Whether the message with this WhatsApp id was sent by this program. */
    isOurs: async (id: string) => (await sent.get(id)) !== undefined,
    /** The message that a phone of its chat requests again; undefined for everybody else. */
    getMessage: (key: WAMessageKey) => askedAgain(key, sent, deps),
  };
}

type PartsDeps = OutboxDeps & {
  readonly transmitter: Transmitter;
  readonly pacer: Pacer;
  readonly edits: Edits;
  readonly courtesies: Courtesies;
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
    ids.push(id);
    const isEnd = index === units.length - 1 && (draft === undefined || ids.includes(draft));
    await context.partSent(id, isEnd);
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
  const { transmitter, courtesies } = deps;
  const { chat } = message.chat;
  const { jid, isFirstContact } = await requireOpenChat(chat, deps);
  const content = await contentOfUnit(unit, deps.host.media);
  await transmitter.ready(signal);
  if (index === 0) await courtesies.markRead(chat, signal);
  const paced = {
    chat,
    isFirstContact,
    isAnswer: message.replyTo !== undefined,
    ...(index === 0 && unit.kind === 'text' ? { text: textName(message.markdown) } : {}),
  };
  try {
    const rows = await deps.pacer.admit(paced, signal, () => courtesies.composing(jid, signal));
    // The owner may have begun to write while it waited.
    await requireUnpaused(chat, deps);
    if (index === 0 && draft !== undefined && unit.kind === 'text') {
      const final = { draft, message: message.id, chat, text: unit.text, rows };
      if (await deps.edits.finish(final, signal)) return draft;
    }
    const id = sentId(message.id, index);
    const context = await deps.contexts.of(chat, index === 0 ? message.replyTo : undefined);
    await transmitter.send({ id, chat, jid, content, context, rows }, signal);
    return nativeId(id);
  } finally {
    await courtesies.done(jid, signal);
  }
}

/** The final text is in messages of its own; a remaining draft would repeat half of it. */
async function removeDraft(
  message: OutboundMessage,
  draft: NativeId,
  signal: AbortSignal,
  { edits, host }: PartsDeps,
): Promise<void> {
  try {
    await edits.remove(message.chat, draft, signal);
  } catch (error) {
    host.log.info('whatsapp preview not removed', { messageId: message.id, error });
  }
}

type OpenChat = { readonly jid: string; readonly isFirstContact: boolean };

/** @throws DeliveryError not_sent for a chat that the agent must not write to */
async function requireOpenChat(chat: ChatId, deps: OutboxDeps): Promise<OpenChat> {
  const { people, settings } = deps;
  const jid = await people.addressOf(chat);
  if (jid === undefined)
    throw notSent(t`no person or group has this name`, NEVER, 'whatsapp_unknown_chat');
  await requireUnpaused(chat, deps);
  // The owner added the account to its groups.
  const isOwners = isOwn(jid, deps.link) || parseJid(jid).kind === 'group';
  if (isOwners || (await people.hasWritten(chat))) return { jid, isFirstContact: false };
  const remedy = firstContactRemedy(settings);
  if (remedy === undefined) return { jid, isFirstContact: true };
  const reason = t`this person never wrote to the account; ${remedy}`;
  throw notSent(reason, NEVER, 'whatsapp_first_contact');
}

async function requireUnpaused(chat: ChatId, { isPaused }: OutboxDeps): Promise<void> {
  const reason = t`the owner of the account is answering in this chat`;
  if (await isPaused(chat)) throw notSent(reason, FORBIDDEN, 'whatsapp_paused');
}

function firstContactRemedy({ firstContact, pacing }: WhatsAppConfig): string | undefined {
  if (!firstContact) return t`channels.whatsapp.firstContact allows to write first`;
  if (pacing.firstContactsPerDay > 0) return undefined;
  return 'channels.whatsapp.pacing.firstContactsPerDay is 0';
}

const isOwn = (jid: string, { socket }: OpenLink) =>
  [socket?.user?.id, socket?.user?.lid].some((own) => isSameAddress(own, jid));

/** Ids can be guessed by people who know how they are made: only its chat gets a message. */
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
  host.log.warn('whatsapp message requested by another chat', { id: key.id });
  return undefined;
}

// The typing notice in the chat while the agent works and before a message that waits, and read
// receipts. These are optional: a failure changes nothing else.

/** Phones show one notice for about this long. */
export const TYPING_SHOWN_MS = 10_000;
const TYPING_DEADLINE_MS = 3000;
/** The library requests the privacy settings first and follows them. */
const RECEIPT_DEADLINE_MS = 5000;

type Courtesies = ReturnType<typeof createCourtesies>;

/** None of its functions throws. */
function createCourtesies(deps: OutboxDeps) {
  const { link, people, isPaused, unread, settings } = deps;
  const { clock, log } = deps.host;
  /** When each address last got a notice, monotonic. */
  const shown = new Map<string, number>();
  const tooSlow = () => new Error('too slow');

  async function notify(jid: string, notice: 'composing' | 'paused', signal: AbortSignal) {
    const { socket } = link;
    if (socket === undefined) return;
    const limits = { clock, ms: TYPING_DEADLINE_MS, signal };
    await within(limits, () => socket.sendPresenceUpdate(notice, jid), tooSlow).catch((error) =>
      log.debug('whatsapp typing notice not shown', { error }),
    );
  }

  async function composing(jid: string, signal: AbortSignal): Promise<void> {
    const now = clock.monotonic();
    for (const [other, at] of shown) if (now - at > 2 * TYPING_SHOWN_MS) shown.delete(other);
    shown.set(jid, now);
    await notify(jid, 'composing', signal);
  }

  /** Marks what the agent works on or answers as read, as a person would. */
  async function markRead(chat: ChatId, signal: AbortSignal): Promise<void> {
    // What cannot be marked now stays unread until the next time.
    const { socket } = link;
    if (!settings.readReceipts || socket === undefined) return;
    const keys = await unread(chat);
    if (keys.length === 0) return;
    const limits = { clock, ms: RECEIPT_DEADLINE_MS, signal };
    await within(limits, () => socket.readMessages([...keys]), tooSlow).catch((error) =>
      log.info('whatsapp messages not marked as read', { count: keys.length, error }),
    );
  }

  return {
    intervalMs: TYPING_SHOWN_MS,
    composing,
    markRead,
    /** Removes a notice that may still be visible. */
    async done(jid: string, signal: AbortSignal): Promise<void> {
      if (shown.delete(jid)) await notify(jid, 'paused', signal);
    },
    async show({ chat }: ChatRef, signal: AbortSignal): Promise<void> {
      const [jid, isSilent] = await Promise.all([people.addressOf(chat), isPaused(chat)]);
      if (jid === undefined || isSilent) return;
      await markRead(chat, signal);
      await composing(jid, signal);
    },
  };
}

// The reaction on people's messages while the agent works. A reaction is a message of its own: with
// an id of ours, stored before it is sent, within the pacing limits. One that would have to wait is
// skipped.

function createReactions(
  { transmitter, sent, pacer, admit }: EditsDeps,
  { addressOf }: Pick<People, 'addressOf'>,
): Pick<Reactions, 'react'> {
  async function keyOf({ chat, id, author }: WhatsAppName, jid: string): Promise<WAMessageKey> {
    const key = { remoteJid: jid, id, fromMe: chat === SELF_CHAT };
    const participant = author === chat ? undefined : await addressOf(author);
    return participant === undefined ? key : { ...key, participant };
  }

  async function set(to: MessageId, name: WhatsAppName, text: string, signal: AbortSignal) {
    const { chat } = name;
    const jid = await admit(chat);
    const id = setIdOf(to);
    if ((await sent.get(id)) === undefined && !(await pacer.takeFree(answerTo(chat)))) return;
    const content = { react: { text, key: await keyOf(name, jid) } };
    await transmitter.send({ id, chat, jid, content }, signal);
  }

  /** Also if the owner has begun to write there: no reaction of the agent may remain. */
  async function clear(to: MessageId, name: WhatsAppName, signal: AbortSignal) {
    const { chat } = name;
    const jid = (await sent.get(setIdOf(to)))?.jid;
    if (jid === undefined) return;
    const rows = await pacer.admit(answerTo(chat), signal);
    const content = { react: { text: '', key: await keyOf(name, jid) } };
    await transmitter.send({ id: sentId(to, 'no sign'), chat, jid, content, rows }, signal);
  }

  return {
    async react(to, emoji, signal) {
      const name = whatsappNameOf(to);
      if (name === undefined) return;
      if (emoji === undefined) await clear(to, name, signal);
      else await set(to, name, emoji, signal);
    },
  };
}

const setIdOf = (to: MessageId) => sentId(to, 'sign');
