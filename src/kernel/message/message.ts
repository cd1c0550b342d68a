// What travels between people and the agent. Channels build inbound messages and carry out outbound
// ones; nothing in between reads a platform's own format, and there is no metadata bag: what a
// channel needs to answer it keeps in its own state by message id.

import { renderPlain } from '../../lib/markup/markup.ts';
import { excerptOf, headOf, shortened } from '../../lib/text/cut.ts';
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

export type Quote = {
  readonly author?: string;
  readonly text: string;
  /** The platform says that the agent sent it, by this id. */
  readonly sentAs?: NativeId;
};

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

// What a turn says while it runs. Events feed live replies, the terminal and the log; what must
// survive a crash is in the session file and on the bus, never only here.

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
      /** Left out where it is none, or of no kind. */
      readonly failure?: ToolFailureKind;
      readonly preview: string;
    }
  | {
      readonly type: 'model_called';
      readonly model: string;
      readonly usage?: TokenUsage;
      /** Tool calls it asked for, run or not. */
      readonly calls: number;
      /** It says that something was done which no tool did. */
      readonly isDoubted?: true;
    }
  /** A sentence for the person about the turn itself, e.g. that the model is being retried. */
  | { readonly type: 'notice'; readonly text: string };

const MAX_PREVIEW_CHARS = 120;

/** What a person sees of a tool's result beside the call. */
export const previewOf = (result: string): string =>
  headOf(result.split('\n', 1).join(''), MAX_PREVIEW_CHARS);

export type TurnOutcome = {
  readonly kind: 'answered' | 'stopped' | 'failed';
  /** Texts to send, in order; empty where there is nothing to say. */
  readonly answers: readonly string[];
  /** Highest bus sequence number consumed, steering included. */
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

/** A whole picture of a turn in progress; a later one replaces an earlier one. */
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
   * In the `ended` picture of a turn that came to its end: how, and how many answers follow. `moved`:
   * it goes on in another chat, and what this one shows of it is to be taken away.
   */
  readonly result?: { readonly kind: TurnOutcome['kind'] | 'moved'; readonly answers: number };
};

// Choices where a platform has no buttons: the labels are numbered below the text, and the number is
// the answer.

/** The message with its choices as a numbered list in its text. */
export function withNumbers(message: OutboundMessage): OutboundMessage {
  const { choices = [], markdown, ...rest } = message;
  if (choices.length === 0) return { ...rest, markdown };
  return { ...rest, markdown: `${markdown}\n\n${numberedLabels(choices)}` };
}

function numberedLabels(choices: readonly Choice[]): string {
  const lines = choices.map(({ label }, index) => `${index + 1}. ${label}`);
  return `${lines.join('\n')}\n\nAnswer with the number.`;
}

// What came of a press, in the few words that fit beside the button. The whole text stands in the chat.

/** UTF-16 units; Telegram shows no more (Bot API, answerCallbackQuery). */
const MAX_UNITS = 200;

/** Empty where there is nothing to show. */
export function toastOf(markdown: string): string {
  const [first = ''] = renderPlain(markdown)
    .trim()
    .split(/\n{2,}/);
  const line = first.replace(/\s+/gu, ' ').trim();
  return shortened(line, MAX_UNITS);
}

// Changes of what was said before: whose they are, what they do to a turn that has not begun, and
// their words for the model and for the person.

/** Only the author changes a message. */
export function isSameSender(one: Sender, other: Sender): boolean {
  if (one.kind !== 'person' || other.kind !== 'person') return false;
  const ids: readonly string[] = idsOf(one);
  return idsOf(other).some((id) => ids.includes(id));
}

type Numbered = { readonly seq: number; readonly message: InboundMessage };

/**
 * The messages of a turn that the model was not shown yet, each as its author wants it now. The
 * changes are gone from among them, but their places count: the last message has the highest.
 */
export function withChanges<Q extends Numbered>(messages: readonly Q[]): readonly Q[] {
  let result: readonly Q[] = [];
  for (const queued of messages) {
    const { amends } = queued.message;
    const earlier = result.find(({ message }) => message.id === amends?.id);
    if (amends === undefined || earlier === undefined) result = [...result, queued];
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

/** In front of the new text, where the model has seen the earlier one. */
export function changeNote({ kind, earlier }: Amendment): string {
  const which = earlier === undefined ? 'an earlier message' : `my message "${earlier}"`;
  return kind === 'withdrawn'
    ? `[I have deleted ${which}: ignore it]`
    : `[I have changed ${which}; this replaces it]`;
}

/** Asked when the message is answered already, as it was before. */
export function againQuestion({ earlier }: Amendment, changed: 'during' | 'after'): string {
  const which = earlier === undefined ? 'a message' : `your message "${earlier}"`;
  const what =
    changed === 'after'
      ? `You changed ${which} after I had answered it.`
      : `You changed ${which} while I was answering it: the answer is to the earlier version.`;
  return `${what} Shall I answer the new version?`;
}

// A person's reaction to something we sent, in words for the model.

const MAX_EMOJI_UNITS = 16;

/** Only signs, never words: what a client calls an emoji may be any text. */
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
  const about = `your answer "${excerptOf(answer)}"`;
  const who = group === undefined ? '' : `${authorOf(sender)}: `;
  return reaction?.emoji === undefined
    ? `${who}[took back the reaction to ${about}]`
    : `${who}[reacted with ${reaction.emoji} to ${about}]`;
}

/** The message that a call answers: its sender and its chat pay. */
export type Payer = Pick<InboundMessage, 'chat' | 'sender' | 'session'> & {
  /** Whoever is in the chat knows nothing of it: an owner is told instead. */
  readonly isUnseen?: boolean;
};

/** A text of the agent for somebody outside the conversation. */
export type Letter =
  | {
      readonly kind: 'mail';
      /** A plain address in its one spelling, see core/mail/address. */
      readonly to: string;
      /** Who gets a copy, each in the same spelling and none of them twice. */
      readonly cc?: readonly string[];
      /** Which of our mailboxes it goes out from, by name or address; absent: that of the chat. */
      readonly from?: string;
      readonly subject: string;
      readonly markdown: string;
    }
  | {
      readonly kind: 'chat';
      /** A known person's name or id, or `channel:chat`. */
      readonly to: string;
      readonly markdown: string;
    };
