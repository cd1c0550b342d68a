// Messages between people and the agent. Channels create inbound messages and send outbound ones;
// nothing in between reads a platform's own format, and there is no metadata bag: a channel stores
// what it needs for an answer in its own state by message id.

import { renderPlain } from '../../lib/markup/markup.ts';
import { excerptOf, headOf, shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Rights } from '../access/rights.ts';
import type { Attachment, OutboundAttachment } from './attachment.ts';
import type { ToolFailureKind } from './errors.ts';
import {
  type AccountRef,
  accountId,
  accountName,
  type CallId,
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
import type { TokenUsage } from './transcript.ts';
import type { TurnPerson } from './untrusted.ts';

const MAX_NAME_CHARS = 40;

const ID_TAIL_CHARS = 4;

/** The display name with the end of the stable id, which nobody can choose. */
export function authorOf(sender: Sender): string {
  if (sender.kind === 'system') return sender.source;
  const name = (sender.name ?? '').replace(/[\p{C}\p{Z}():|<>[\]]+/gu, ' ').trim();
  const shown = headOf(name, MAX_NAME_CHARS).trim();
  return `${shown === '' ? 'somebody' : shown} (…${sender.id.slice(-ID_TAIL_CHARS)})`;
}

/** The place of a conversation. */
export type ChatRef = AccountRef & {
  readonly chat: ChatId;
  readonly thread?: ThreadId | undefined;
};

/**
 * How well the sender's identity is proven: `verified` by the platform or by a signature,
 * `asserted` by a trusted party, `unverified` by nobody.
 */
export type Verification = 'verified' | 'asserted' | 'unverified';

export type PersonSender = {
  readonly kind: 'person';
  readonly id: UserId;
  /** Display name: shown, never trusted. */
  readonly name?: string | undefined;
  readonly verified: Verification;
  /** Further ids of the same person, as certain as `id`: letting one in lets in all. */
  readonly alsoKnownAs?: readonly UserId[] | undefined;
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
    | 'draft'
    | 'fallback'
    /** What an owner writes in the agent's place. */
    | 'owner';
  /** The rights of its creator; without them its turn may only answer. */
  readonly rights?: Rights;
  /** The person whose turn created it. */
  readonly person?: TurnPerson;
  /** Its text contains untrusted content. */
  readonly isTainted?: true;
  /**
   * The person whose budget its turn is charged to in addition to that of the chat: `channel:id`.
   */
  readonly paidBy?: readonly [string, ...string[]];
  /** Daily limits of the chat's turns, if stricter than configured. */
  readonly limits?: { readonly tokensPerDay?: number; readonly moneyPerDay?: number };
};

export type Sender = PersonSender | SystemSender;

export type Quote = {
  readonly author?: string | undefined;
  readonly text: string;
  /** The platform says that the agent sent it, under this id. */
  readonly sentAs?: NativeId | undefined;
};

/** The group of a message. */
export type GroupRef = {
  /** All ids the group has or had: one on the list is enough. The first is that of the chat. */
  readonly ids: readonly [ChatId, ...ChatId[]];
  /** Shown, never trusted. */
  readonly title?: string | undefined;
};

/** A message in a group that was not addressed to the agent. */
export type HeardLine = {
  readonly id: MessageId;
  /** The author's name for the model, see `authorOf`. */
  readonly author: string;
  readonly text: string;
  /** Epoch milliseconds, local clock. */
  readonly at: number;
};

/** A change of an earlier message of the same person. */
export type Amendment = {
  readonly id: MessageId;
  /**
   * `edited`: the text replaces the earlier one; `withdrawn`: as if it had not been said; `again`:
   * unchanged, and to be answered once more.
   */
  readonly kind: 'edited' | 'withdrawn' | 'again';
  /** First words of the changed message, if it was no longer waiting. */
  readonly earlier?: string;
};

/** A person's reaction to a message of the agent; without an emoji they removed it. */
export type Reaction = { readonly to: NativeId; readonly emoji?: string | undefined };

export type InboundMessage = {
  /** `channel:account:native`; the dedupe key. */
  readonly id: MessageId;
  readonly chat: ChatRef;
  /** Its conversation, if that is not the chat's own. Set by the intake. */
  readonly session?: SessionKey;
  readonly sender: Sender;
  /** How the agent was addressed; `ambient` is talk among others. */
  readonly addressing: 'direct' | 'mention' | 'reply' | 'ambient';
  /** Set if it was not said in a private chat. */
  readonly group?: GroupRef | undefined;
  /** Earlier talk of others in the group, oldest first. */
  readonly heard?: readonly HeardLine[];
  /** The sender's subject, if the channel has subjects. */
  readonly subject?: string | undefined;
  readonly text: string;
  readonly attachments?: readonly Attachment[] | undefined;
  /** More of it is likely to follow, e.g. the rest of an album. */
  readonly mayContinue?: true | undefined;
  readonly quoted?: Quote | undefined;
  readonly replyTo?: MessageId | undefined;
  /** The token of the choice that the person pressed; the text is its label then. */
  readonly press?: string | undefined;
  readonly amends?: Amendment | undefined;
  /**
   * It is answered again: the turn whose answer is replaced. A turn that the person did not ask for,
   * because they changed the message, may only answer. Never stored.
   */
  readonly redoes?: { readonly turn: TurnId; readonly isAsked: boolean };
  /** The text is empty then. */
  readonly reaction?: Reaction | undefined;
  /** The text is sent to the chat unchanged, with these files: no answer is expected. */
  readonly announces?: { readonly attachments: readonly OutboundAttachment[] };
  /** A note for the model with the message, e.g. which question it answers. Never stored. */
  readonly note?: string;
  /** Epoch milliseconds, platform's clock. */
  readonly sentAt: number;
  /** Epoch milliseconds, local clock. */
  readonly receivedAt: number;
};

/**
 * A button below a text. The token is random, at most 48 characters of `[A-Za-z0-9_-]`, and valid
 * once; if the platform has no buttons the gateway numbers the labels.
 */
export type Choice = { readonly label: string; readonly token: string };

/** What a turn or a command sends, before it has a durable name. */
export type OutboundDraft = {
  readonly chat: ChatRef;
  readonly markdown: string;
  /** Of a text that is no answer, for channels with subjects; others ignore it. */
  readonly subject?: string;
  /** Of a text that is no answer, for channels with addresses: plain addresses of copies. */
  readonly copies?: readonly string[];
  readonly attachments?: readonly OutboundAttachment[];
  readonly choices?: readonly Choice[];
  /** The inbound message this answers. */
  readonly replyTo?: MessageId;
  /** The question it answers, named if the answer is late. */
  readonly question?: Question;
  /** The turn whose live draft this text completes. */
  readonly finalizes?: TurnId;
  /** A person wrote this text for its recipient: it is not automatic. */
  readonly isDictated?: true;
};

/**
 * A durable answer. Its id is `${turnId}/${n}` (or `${messageId}/reply`): the same after a crash.
 */
export type OutboundMessage = OutboundDraft & { readonly id: MessageId };

/** Every id by which this person is known for certain. */
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

/** The chat of a session key, or undefined if the text is none. */
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

// Messages and conversations that the gateway begins by itself.

/** A message that is written at this moment, as in a private chat. */
export const writtenNow = (
  message: Omit<InboundMessage, 'addressing' | 'sentAt' | 'receivedAt'>,
  now: number,
): InboundMessage => ({ ...message, addressing: 'direct', sentAt: now, receivedAt: now });

/** A channel without people: each of its chats is the conversation of one piece of work. */
export function workChannel(name: string) {
  const channel = channelName(name);
  const chatOf = (id: string): ChatRef => ({ channel, account: DEFAULT_ACCOUNT, chat: chatId(id) });
  return { channel, chatOf, sessionOf: (id: string): SessionKey => sessionKeyOf(chatOf(id)) };
}

// Events of a running turn. They feed live previews, the terminal and the log; what must survive a
// crash is in the session file and on the bus, never only here.

export type AgentEvent =
  | { readonly type: 'thinking' }
  | { readonly type: 'text_delta'; readonly text: string }
  /** The text shown since the last model call began is withdrawn (the call starts again). */
  | { readonly type: 'text_discarded' }
  | {
      readonly type: 'tool_started';
      readonly callId: CallId;
      readonly name: string;
      readonly detail: string;
    }
  | {
      readonly type: 'tool_finished';
      readonly callId: CallId;
      /** `waiting`: an owner is asked for an approval; the call may run later. */
      readonly status: 'ok' | 'failed' | 'waiting';
      /** Absent if there is none, or it has no kind. */
      readonly failure?: ToolFailureKind;
      readonly preview: string;
    }
  | {
      readonly type: 'model_called';
      readonly model: string;
      readonly usage?: TokenUsage;
      /** Requested tool calls, run or not. */
      readonly calls: number;
      /** The answer claims an action that no tool did. */
      readonly isDoubted?: true;
    }
  /** A sentence for the person about the turn itself, e.g. that the model call is retried. */
  | { readonly type: 'notice'; readonly text: string };

const MAX_PREVIEW_CHARS = 120;

/** The part of a tool's result that a person sees beside the call. */
export const previewOf = (result: string): string =>
  headOf(result.split('\n', 1).join(''), MAX_PREVIEW_CHARS);

export type TurnOutcome = {
  readonly kind: 'answered' | 'stopped' | 'failed';
  /** Texts to send, in order; empty if there are none. */
  readonly answers: readonly string[];
  /** Highest processed bus sequence number, including messages that joined. */
  readonly throughSeq: number;
};

export type ToolActivity = {
  readonly callId: CallId;
  readonly name: string;
  readonly detail: string;
  readonly status: 'running' | 'ok' | 'failed' | 'waiting';
  /** First line of the result, cut; absent while it runs. */
  readonly preview?: string;
};

/** A complete snapshot of a running turn; a later one replaces an earlier one. */
export type LiveUpdate = {
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly replyTo?: MessageId;
  readonly phase: 'thinking' | 'writing' | 'tool' | 'ended';
  /** The answer so far, Markdown. */
  readonly markdown: string;
  readonly tools: readonly ToolActivity[];
  readonly notice?: string;
  /**
   * In the `ended` snapshot: how the turn ended, and how many answers follow. `moved`: it continues
   * in another chat, and this one removes what it shows of it.
   */
  readonly result?: { readonly kind: TurnOutcome['kind'] | 'moved'; readonly answers: number };
};

// Choices on platforms without buttons: the labels are numbered below the text, and the number is
// the answer.

/** The message with its choices as a numbered list in its text. */
export function withNumbers(message: OutboundMessage): OutboundMessage {
  const { choices = [], markdown, ...rest } = message;
  if (choices.length === 0) return { ...rest, markdown };
  return { ...rest, markdown: `${markdown}\n\n${numberedLabels(choices)}` };
}

function numberedLabels(choices: readonly Choice[]): string {
  const lines = choices.map(({ label }, index) => `${index + 1}. ${label}`);
  return t`${lines.join('\n')}\n\nReply to this message with the number.`;
}

// The outcome of a button press as a short text beside the button. The whole text is in the chat.

/** UTF-16 units; Telegram shows no more (Bot API, answerCallbackQuery). */
const MAX_UNITS = 200;

/** Empty if there is nothing to show. */
export function toastOf(markdown: string): string {
  const [first = ''] = renderPlain(markdown)
    .trim()
    .split(/\n{2,}/);
  const line = first.replace(/\s+/gu, ' ').trim();
  return shortened(line, MAX_UNITS);
}

// Changes of earlier messages: who may make them, their effect on a turn that has not begun, and
// their text for the model and for the person.

/** Only the author changes a message. */
export function isSameSender(one: Sender, other: Sender): boolean {
  if (one.kind !== 'person' || other.kind !== 'person') return false;
  const ids: readonly string[] = idsOf(one);
  return idsOf(other).some((id) => ids.includes(id));
}

type Numbered = { readonly seq: number; readonly message: InboundMessage };

/**
 * The messages of a turn that the model has not seen yet, in their current version. The changes
 * themselves are removed, but their sequence numbers count: the last message has the highest.
 */
export function withChanges<Q extends Numbered>(messages: readonly Q[]): readonly Q[] {
  let result: readonly Q[] = [];
  for (const queued of messages) {
    const { amends } = queued.message;
    const earlier = result.find(({ message }) => message.id === amends?.id);
    if (amends === undefined || earlier === undefined) result = [...result, queued];
    else if (amends.kind === 'again') continue;
    else if (amends.kind === 'withdrawn') result = result.filter((one) => one !== earlier);
    else result = result.map((one) => (one === earlier ? withText(one, queued) : one));
  }
  const seq = Math.max(0, ...messages.map((queued) => queued.seq));
  return result.map((queued, index) => (index === result.length - 1 ? { ...queued, seq } : queued));
}

const withText = <Q extends Numbered>(one: Q, { message: { text } }: Q): Q => ({
  ...one,
  message: { ...one.message, text },
});

/** Precedes the new text, if the model has seen the earlier one. */
export function changeNote({ kind, earlier }: Amendment): string {
  const which = earlier === undefined ? t`an earlier message` : t`my message "${earlier}"`;
  return kind === 'withdrawn'
    ? `[I have deleted ${which}: ignore it]`
    : `[I have changed ${which}; this replaces it]`;
}

/** Asked when the earlier version of the message has been answered already. */
export function againQuestion({ earlier }: Amendment, changed: 'during' | 'after'): string {
  const which = earlier === undefined ? 'a message' : t`your message "${earlier}"`;
  const what =
    changed === 'after'
      ? t`You changed ${which} after I had answered it.`
      : t`You changed ${which} while I was answering it: the answer is to the earlier version.`;
  return t`${what} Shall I answer the new version?`;
}

// A person's reaction to a message of the agent, as text for the model.

const MAX_EMOJI_UNITS = 16;

/** Only symbols, never words: a client may send any text as an emoji. */
export function emojiOf(text: string | undefined): string | undefined {
  const sign = text?.trim() ?? '';
  const isSign =
    sign.length <= MAX_EMOJI_UNITS &&
    /^(?:\p{RGI_Emoji}|\p{Extended_Pictographic}\uFE0F?)$/v.test(sign);
  return isSign ? sign : undefined;
}

export function reactionNote(
  { reaction, group, sender }: Pick<InboundMessage, 'reaction' | 'group' | 'sender'>,
  answer: string,
): string {
  const about = t`your answer "${excerptOf(answer)}"`;
  const who = group === undefined ? '' : `${authorOf(sender)}: `;
  return reaction?.emoji === undefined
    ? t`${who}[took back the reaction to ${about}]`
    : t`${who}[reacted with ${reaction.emoji} to ${about}]`;
}

/** The message that a call answers: its sender and its chat pay. */
export type Payer = Pick<InboundMessage, 'chat' | 'sender' | 'session'> & {
  /** The people in the chat do not know about it: an owner gets the notice instead. */
  readonly isUnseen?: boolean;
};

/** A text of the agent for a person outside the conversation. */
export type Letter =
  | {
      readonly kind: 'mail';
      /** A plain address in its canonical spelling. */
      readonly to: string;
      /** Recipients of copies, in the same spelling, without duplicates. */
      readonly cc?: readonly string[];
      /** The mailbox that sends it, by name or address; absent: that of the chat. */
      readonly from?: string;
      readonly subject: string;
      readonly markdown: string;
      /** Their content as it was when the letter was written. */
      readonly attachments?: readonly OutboundAttachment[];
    }
  | {
      readonly kind: 'chat';
      /** A known person's name or id, or `channel:chat`. */
      readonly to: string;
      readonly markdown: string;
    };
