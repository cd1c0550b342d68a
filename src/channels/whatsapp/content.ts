// The content of a WhatsApp message: taken out of its containers (disappearing, view once, edited ...), with
// its quote and mentions, and what it does to an earlier message (edit, deletion, reaction).

import type { proto } from '@whiskeysockets/baileys';
import { emojiOf } from '../../kernel/message/change.ts';
import { saidIn } from '../inbound-message.ts';
import { attachmentsOf, wordsOfKind } from './message.ts';
import { idOfPerson, isPerson, type PersonJid, parseJid } from './rules/jid.ts';

export type WhatsAppReading = NonNullable<ReturnType<typeof readWhatsApp>>;

/** A hostile message may be nested deeper than any reader. */
const MAX_DEPTH = 8;
/** A message is of one kind, with a few signs for programs beside it. */
const MAX_KINDS = 8;
const MAX_NAMED = 50;
/** The mark by which the rest of the program knows untrusted text. */
const PASSED_ON = '[forwarded]';
/** Kinds whose words are mostly made by somebody else than who sends them. */
const WORDS_OF_OTHERS: ReadonlySet<string> = new Set([
  'buttonsMessage',
  'buttonsResponseMessage',
  'contactMessage',
  'contactsArrayMessage',
  'groupInviteMessage',
  'interactiveMessage',
  'interactiveResponseMessage',
  'listMessage',
  'listResponseMessage',
  'templateButtonReplyMessage',
  'templateMessage',
]);
/** Of a kind that the vendor's library does not know, nothing is left but an empty message. */
const UNKNOWN_KIND = '[sent something of a kind that is not known here yet]';

/** Undefined for what says nothing by itself: reactions, votes, signs between programs. */
export function readWhatsApp(message: proto.IMessage) {
  const { content, isEdit, isForwarded } = unwrap(message);
  const attachments = attachmentsOf(content);
  const said = textOf(content, isForwarded);
  if (said === undefined && attachments.length === 0) return undefined;
  // A recording that was passed on is nobody's own speech here.
  const text = said ?? (isForwarded || isPassedOn(content) ? PASSED_ON : '');
  const context = contextOf(content);
  const mentioned = namedIn(context);
  return {
    text,
    /** Files that it carries. */
    attachments: attachments.length === 0 ? undefined : attachments,
    /** It replaces the text of an earlier message. */
    isEdit,
    /** It is part of an album, which comes as several messages. */
    isOfAlbum: albumOf(message) === undefined ? undefined : true,
    quoted: quoteOf(context),
    /** Whom it names. */
    mentioned: mentioned.length === 0 ? undefined : mentioned,
  };
}

const namedIn = (context: proto.IContextInfo | undefined): readonly PersonJid[] =>
  (context?.mentionedJid ?? []).slice(0, MAX_NAMED).map(parseJid).filter(isPerson);

function unwrap(message: proto.IMessage): {
  readonly content: proto.IMessage;
  readonly isEdit: boolean;
  readonly isForwarded: boolean;
} {
  let content = message;
  let isEdit = false;
  let isForwarded = false;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const inner = innerOf(content);
    if (inner === undefined) break;
    isEdit ||= present(content.editedMessage) || present(content.protocolMessage);
    isForwarded ||= present(content.botForwardedMessage);
    content = inner;
  }
  return { content, isEdit, isForwarded };
}

/** Every container, also one of a later WhatsApp, holds its content as `message`. */
export function innerOf(content: proto.IMessage): proto.IMessage | undefined {
  const edited = content.protocolMessage?.editedMessage;
  if (edited !== undefined && edited !== null) return edited;
  for (const value of Object.values(content)) {
    if (!isObject(value) || !('message' in value)) continue;
    if (isObject(value.message)) return value.message;
  }
  return undefined;
}

function textOf(content: proto.IMessage, isForwarded: boolean): string | undefined {
  const kinds = Object.entries(content).filter(([, value]) => present(value));
  if (kinds.length === 0) return UNKNOWN_KIND;
  const words = kinds.slice(0, MAX_KINDS).map(([kind]) => wordsOfKind(kind, content));
  const said = words.flatMap(({ note, text }) => [note, text]).filter((part) => part !== undefined);
  if (said.length === 0) return undefined;
  const text = withNamedPeople(said.join('\n'), namedIn(contextOf(content)));
  return isForwarded || isPassedOn(content) ? `${PASSED_ON}\n${text}` : text;
}

/** Not the words of who sends it: of another chat, a channel, a business or a bot. */
function isPassedOn(content: proto.IMessage): boolean {
  const context = contextOf(content);
  const kinds = Object.entries(content).filter(([, value]) => present(value));
  return (
    kinds.some(([kind]) => WORDS_OF_OTHERS.has(kind)) ||
    context?.isForwarded === true ||
    Number(context?.forwardingScore ?? 0) > 0 ||
    present(context?.forwardedNewsletterMessageInfo) ||
    present(context?.businessMessageForwardInfo) ||
    present(context?.forwardedAiBotMessageInfo)
  );
}

/** WhatsApp writes `@` and the digits of an address; ours are spelled like all ids of people. */
function withNamedPeople(text: string, people: readonly PersonJid[]): string {
  if (people.length === 0) return text;
  const ids = new Map(people.map((person) => [person.user, idOfPerson(person)]));
  return text.replace(/(?<![\w.])@(\d{1,20})(?!\d)/g, (whole, digits: string) => {
    const id = ids.get(digits);
    return id === undefined ? whole : `@${id}`;
  });
}

function quoteOf(context: proto.IContextInfo | undefined) {
  const id = context?.stanzaId;
  if (!id) return undefined;
  const { participant, quotedMessage } = context;
  return {
    id,
    /** As it came; missing where the quoted message is not ascribed to anybody. */
    authorJid: participant || undefined,
    /** Missing where the quoted message says nothing or did not come along. */
    text: present(quotedMessage) ? quotedText(quotedMessage) : undefined,
  };
}

/** The id of the album that a message is a part of. */
export function albumOf(message: proto.IMessage): string | undefined {
  return albumIn(message) ?? albumIn(unwrap(message).content);
}

const albumIn = ({ messageContextInfo }: proto.IMessage) => {
  const parent = messageContextInfo?.messageAssociation?.parentMessageKey;
  return present(parent) ? (parent?.id ?? '') : undefined;
};

/** Of what is quoted nothing is fetched. */
const NAMED = { kind: 'remote', ref: '' } as const;

/** What is quoted, with its files in words. */
function quotedText(message: proto.IMessage): string | undefined {
  const { content, isForwarded } = unwrap(message);
  const attachments = attachmentsOf(content).map((one) => ({ ...one, content: NAMED }));
  return saidIn(textOf(content, isForwarded), attachments);
}

function contextOf(content: proto.IMessage): proto.IContextInfo | undefined {
  for (const value of Object.values(content)) {
    if (!isObject(value) || !('contextInfo' in value)) continue;
    if (isObject(value.contextInfo)) return value.contextInfo;
  }
  return undefined;
}

function present<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

// What a WhatsApp message does to an earlier one: it changes it, deletes it, or is a reaction to it. The
// sender names it by its id alone; whose it was is for whoever knows both.

export type WhatsAppSign =
  | { readonly kind: 'edited' | 'withdrawn'; readonly id: string }
  /** Without an emoji the reaction was taken back. */
  | { readonly kind: 'reacted'; readonly id: string; readonly emoji?: string };

/** `ProtocolMessage.Type` of WhatsApp's protocol. */
const REVOKE = 0;
/** A hostile message may be nested deeper than any reader. */
const MAX_SIGN_DEPTH = 8;

/** Undefined for what stands for itself, and for a reaction by something that is no emoji. */
export function signOf(message: proto.IMessage): WhatsAppSign | undefined {
  let content: proto.IMessage | undefined = message;
  for (let depth = 0; depth < MAX_SIGN_DEPTH && content !== undefined; depth += 1) {
    const sign = changeIn(content) ?? reactionIn(content);
    if (sign !== undefined) return sign;
    content = innerOf(content);
  }
  return undefined;
}

function changeIn({ protocolMessage }: proto.IMessage): WhatsAppSign | undefined {
  const id = protocolMessage?.key?.id;
  if (!id) return undefined;
  if (protocolMessage?.editedMessage) return { kind: 'edited', id };
  return Number(protocolMessage?.type ?? REVOKE) === REVOKE ? { kind: 'withdrawn', id } : undefined;
}

function reactionIn({ reactionMessage }: proto.IMessage): WhatsAppSign | undefined {
  const id = reactionMessage?.key?.id;
  if (!id) return undefined;
  if (!reactionMessage?.text) return { kind: 'reacted', id };
  const emoji = emojiOf(reactionMessage.text);
  return emoji === undefined ? undefined : { kind: 'reacted', id, emoji };
}
