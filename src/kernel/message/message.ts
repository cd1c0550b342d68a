// What travels between people and the agent. Channels build inbound messages and carry out outbound
// ones; nothing in between reads a platform's own format, and there is no metadata bag: what a
// channel needs to answer it keeps in its own state by message id.

import type { Rights } from '../access/rights.ts';
import { type AccountRef, accountName } from './account.ts';
import type { Attachment, OutboundAttachment } from './attachment.ts';
import {
  accountId,
  type ChatId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  type NativeId,
  type SessionKey,
  sessionKey,
  type ThreadId,
  type TurnId,
  threadId,
  type UserId,
} from './ids.ts';
import type { Question } from './late.ts';
import type { TurnPerson } from './notes.ts';

/** Where a conversation takes place. */
export type ChatRef = AccountRef & {
  readonly chat: ChatId;
  readonly thread?: ThreadId;
};

/**
 * How sure the channel is that the sender is who the id says: `verified` by the platform or by a
 * signature, `asserted` by a party we trust, `unverified` by nobody.
 */
export type Verification = 'verified' | 'asserted' | 'unverified';

export type PersonSender = {
  readonly kind: 'person';
  readonly id: UserId;
  /** Display name: shown, never trusted. */
  readonly name?: string;
  readonly verified: Verification;
  /** Further ids of the same person, as sure as `id`: whoever is let in by one is let in by all. */
  readonly alsoKnownAs?: readonly UserId[];
};

export type SystemSender = {
  readonly kind: 'system';
  readonly source:
    | 'cron'
    | 'heartbeat'
    | 'subagent'
    | 'workflow'
    | 'webhook'
    | 'approval'
    | 'draft';
  /** Of whoever made it; without them its turn may do nothing but answer. */
  readonly rights?: Rights;
  /** Whose turn made it. */
  readonly person?: TurnPerson;
  /** Its text holds words of others. */
  readonly isTainted?: true;
  /** Whose person's budget its turn is charged to beside that of the chat: `channel:id`. */
  readonly paidBy?: readonly [string, ...string[]];
  /** What the chat's turns may take in a day, where that is less than is configured. */
  readonly limits?: { readonly tokensPerDay?: number; readonly moneyPerDay?: number };
};

export type Sender = PersonSender | SystemSender;

export type Quote = { readonly author?: string; readonly text: string };

/** The group a message was said in. */
export type GroupRef = {
  /** All ids the group has or had: listed by one it is listed. The first is that of the chat. */
  readonly ids: readonly [ChatId, ...ChatId[]];
  /** Shown, never trusted. */
  readonly title?: string;
};

/** Something that was said in a group and not to the agent. */
export type HeardLine = {
  readonly id: MessageId;
  /** How the model is told who said it, see `authorOf`. */
  readonly author: string;
  readonly text: string;
  /** Epoch milliseconds by our clock. */
  readonly at: number;
};

/** A change of something the same person said before. */
export type Amendment = {
  readonly id: MessageId;
  /** `edited`: the text replaces the earlier one; `withdrawn`: it is as if it had not been said. */
  readonly kind: 'edited' | 'withdrawn';
  /** First words of what it changes, where that was not waiting any more. */
  readonly earlier?: string;
};

/** What a person thinks of something we sent; without an emoji they took it back. */
export type Reaction = { readonly to: NativeId; readonly emoji?: string };

export type InboundMessage = {
  /** `channel:account:native`; the dedupe key. */
  readonly id: MessageId;
  readonly chat: ChatRef;
  /** The conversation it belongs to, where that is not the chat's own. Set at the gate. */
  readonly session?: SessionKey;
  readonly sender: Sender;
  /** How the agent was spoken to; `ambient` is talk among others. */
  readonly addressing: 'direct' | 'mention' | 'reply' | 'ambient';
  /** Where it was not said between two. */
  readonly group?: GroupRef;
  /** What others said in the group before, oldest first. */
  readonly heard?: readonly HeardLine[];
  /** The heading its sender gave it, where the door knows such a thing. */
  readonly subject?: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** More of it is likely on its way, e.g. the rest of an album. */
  readonly mayContinue?: true;
  readonly quoted?: Quote;
  readonly replyTo?: MessageId;
  /** The token of the choice the person pressed; the text is its label then. */
  readonly press?: string;
  readonly amends?: Amendment;
  /**
   * It is asked again by itself because it was changed, and this is the turn whose answer is replaced:
   * nothing but an answer may come of it. Never stored.
   */
  readonly redoes?: TurnId;
  /** The text is empty then. */
  readonly reaction?: Reaction;
  /** The text is to be said in the chat as it is, with these files: nobody asks for an answer. */
  readonly announces?: { readonly attachments: readonly OutboundAttachment[] };
  /** What the model is told with it, e.g. which question it answers. Never stored. */
  readonly note?: string;
  /** Epoch milliseconds by the platform's clock. */
  readonly sentAt: number;
  /** Epoch milliseconds by our clock. */
  readonly receivedAt: number;
};

/**
 * Something to press below a text. The token is random, at most 48 characters of `[A-Za-z0-9_-]`,
 * and good once; where the platform has no buttons the gateway numbers the labels.
 */
export type Choice = { readonly label: string; readonly token: string };

/** What a turn or a command wants sent, before it has a durable name. */
export type OutboundDraft = {
  readonly chat: ChatRef;
  readonly markdown: string;
  /** Of a text that is no answer, for doors whose messages have subjects; others leave it out. */
  readonly subject?: string;
  /** Of a text that is no answer, for doors that address messages: plain addresses of copies. */
  readonly copies?: readonly string[];
  readonly attachments?: readonly OutboundAttachment[];
  readonly choices?: readonly Choice[];
  /** The inbound message this answers. */
  readonly replyTo?: MessageId;
  /** What it answers, to be named where it comes late. */
  readonly question?: Question;
  /** The turn whose live draft this text completes. */
  readonly finalizes?: TurnId;
  /** A person wrote these words for whom they go to: nothing about them is automatic. */
  readonly isDictated?: true;
};

/** A durable answer. Its id is `${turnId}/${n}` (or `${messageId}/reply`): the same after a crash. */
export type OutboundMessage = OutboundDraft & { readonly id: MessageId };

/** Every id this person is surely known by. */
export function idsOf(sender: PersonSender): readonly UserId[] {
  return [sender.id, ...(sender.alsoKnownAs ?? [])];
}

const escapePart = (part: string) => part.replace(/[%#]/g, encodeURIComponent);

/**
 * The conversation's key: `channel[@account]:chat[#thread]`, with `%` and `#` inside the chat and
 * the thread percent-encoded, so that different chats never share a key.
 */
export function sessionKeyOf(ref: ChatRef): SessionKey {
  const thread = ref.thread === undefined ? '' : `#${escapePart(ref.thread)}`;
  return sessionKey(`${accountName(ref)}:${escapePart(ref.chat)}${thread}`);
}

/** The conversation a message belongs to. */
export function sessionOf({ session, chat }: Pick<InboundMessage, 'session' | 'chat'>): SessionKey {
  return session ?? sessionKeyOf(chat);
}

/** The chat a session key names, or undefined where the text is no session key. */
export function chatRefOf(key: string): ChatRef | undefined {
  const match = /^([a-z0-9-]+)(?:@([^:]+))?:([^#]+)(?:#(.+))?$/s.exec(key);
  if (match === null) return undefined;
  const [, channel = '', account, chat = '', thread] = match;
  return {
    channel: channelName(channel),
    account: account === undefined ? DEFAULT_ACCOUNT : accountId(account),
    chat: chatId(decodeURIComponent(chat)),
    ...(thread === undefined ? {} : { thread: threadId(decodeURIComponent(thread)) }),
  };
}
