// Branded identifiers. Only the code that creates an id may cast to it; all other code passes it on
// unread, so that a chat id can never be passed where a user id is expected.

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Name of a channel as configured, e.g. `telegram`. Lower-case letters, digits and `-`. */
export type ChannelName = Branded<'ChannelName'>;
/** One configured account of a channel; `default` unless several are configured. */
export type AccountId = Branded<'AccountId'>;
/** The platform's own name of a conversation, in the channel's spelling. */
export type ChatId = Branded<'ChatId'>;
/** A thread or topic inside a chat. */
export type ThreadId = Branded<'ThreadId'>;
/** A stable id of a person on a platform; never a display name. */
export type UserId = Branded<'UserId'>;
/**
 * Channel and native id of an inbound message (its dedupe key), or `turnId/n` of an outbound one.
 */
export type MessageId = Branded<'MessageId'>;
/** `session#firstSeq`: the same on every retry of the turn. */
export type TurnId = Branded<'TurnId'>;
/** Printable name of a conversation, see `sessionKeyOf`. */
export type SessionKey = Branded<'SessionKey'>;
/** The platform's message id, e.g. Telegram's `message_id`; only its channel reads it. */
export type NativeId = Branded<'NativeId'>;
/** SHA-256 of a content in the media store, hexadecimal. */
export type MediaId = Branded<'MediaId'>;
/** A person known to the gateway, on all channels. */
export type PersonId = Branded<'PersonId'>;
/** The model's name for one tool call. */
export type CallId = Branded<'CallId'>;
/** Our name for the result of a call, see `resultIdOf`. */
export type ResultId = Branded<'ResultId'>;

export const channelName = (value: string) => value as ChannelName;
export const accountId = (value: string) => value as AccountId;
export const chatId = (value: string) => value as ChatId;
export const threadId = (value: string) => value as ThreadId;
export const userId = (value: string) => value as UserId;
export const messageId = (value: string) => value as MessageId;
export const turnId = (value: string) => value as TurnId;
export const sessionKey = (value: string) => value as SessionKey;
export const nativeId = (value: string) => value as NativeId;
export const mediaId = (value: string) => value as MediaId;
export const personId = (value: string) => value as PersonId;
export const callId = (value: string) => value as CallId;
export const resultId = (value: string) => value as ResultId;

export const DEFAULT_ACCOUNT = accountId('default');

/** Prefix of the id of every notice to the owner. */
export const ALERT = 'alert/';

// The name of a turn: its session and the sequence number of its first message, so that every retry
// of the turn, in this process or the next, has the same name.

export function turnIdOf(session: SessionKey, firstSeq: number): TurnId {
  return turnId(`${session}#${firstSeq}`);
}

/** The sequence number in a turn's name; undefined for another text. */
export function firstSeqOf(turn: TurnId): number | undefined {
  const match = /#(\d+)$/.exec(turn);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** The turn of this answer; undefined for a text that no turn sent. */
export function turnOfAnswer(answer: MessageId): TurnId | undefined {
  const [, turn] = /^(.*#\d+)\/(?:say\/)?\d+(?:\/moved)?$/.exec(answer) ?? [];
  return turn === undefined ? undefined : turnId(turn);
}

/** The conversation of a turn, which is not always that of the chat in which it was answered. */
export function sessionOfTurn(turn: TurnId): SessionKey {
  return sessionKey(turn.replace(/#\d+$/, ''));
}

/** The name of a turn's n-th answer, counted from 0. */
export function answerIdOf(turn: TurnId, ordinal: number): MessageId {
  return messageId(`${turn}/${ordinal}`);
}

// One account of a channel, and its names: in rows and texts, and in the configuration.

export type AccountRef = { readonly channel: ChannelName; readonly account: AccountId };

/** `email@work`; the default account has the channel's name: `email`. */
export type AccountName = ChannelName | Branded<'AccountName'>;

export function accountName({ channel, account }: AccountRef): AccountName {
  return account === DEFAULT_ACCOUNT ? channel : (`${channel}@${account}` as AccountName);
}

/** The same for a running channel. */
export function accountNameOf(running: {
  readonly name: ChannelName;
  readonly account: AccountId;
}): AccountName {
  return accountName({ channel: running.name, account: running.account });
}

/** The account of a name, whether or not it exists. */
export function accountOf(name: string): AccountRef {
  const [channel = '', account] = name.split('@');
  return {
    channel: channelName(channel),
    account: account === undefined ? DEFAULT_ACCOUNT : accountId(account),
  };
}

/** The scope of its rows in the store. */
export const channelScope = ({ channel, account }: AccountRef): string =>
  `channel:${channel}:${account}`;

/** The path of its settings: `channels.email`, or `channels.email.accounts.work`. */
export function accountPath({ channel, account }: AccountRef): string {
  const further = account === DEFAULT_ACCOUNT ? '' : `.accounts.${account}`;
  return `channels.${channel}${further}`;
}
