// CONTRACT of a built-in channel (web page, terminal): a chat surface on the same bus as any platform, with a
// durable log, so that a page that lost its connection resumes without loss. Whoever holds the gateway's
// token or a login of the page is one person, the owner.

import type { AttachmentKind } from '../kernel/message/attachment.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import {
  channelName,
  type MediaId,
  type MessageId,
  type TurnId,
  userId,
} from '../kernel/message/ids.ts';
import type {
  Amendment,
  Choice,
  LiveUpdate,
  PersonSender,
  ToolActivity,
  TurnOutcome,
} from '../kernel/message/message.ts';
import type { LocalChannelSpec } from '../kernel/people/persons.ts';

/** What a chat and a client id may look like: safe in keys, URLs and file names. */
export const LOCAL_CHAT_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** The gateway is starting or stopping and takes nothing in; the same message may come again. */
export class ChannelClosedError extends NanobotError {
  override readonly name = 'ChannelClosedError';
  constructor(message: string) {
    super('door_closed', message);
  }
}

/** A chat or client id that is no LOCAL_CHAT_NAME, or the name of something that is not there. */
export class LocalNameError extends NanobotError {
  override readonly name = 'LocalNameError';
  constructor(message: string) {
    super('door_name', message);
  }
}

export type LocalEvent =
  /** `seq` counts up within a chat; a reader resumes behind the last one it saw. */
  | {
      readonly type: 'said';
      readonly seq: number;
      readonly id: MessageId;
      readonly from: 'person' | 'agent';
      /** The newest message that an answer answers. */
      readonly replyTo?: MessageId;
      /** Plain text of a person, Markdown of the agent. */
      readonly text: string;
      /** What can be pressed below it. */
      readonly choices?: readonly Choice[];
      /** The token of the choice the person pressed; the text is its label. */
      readonly press?: string;
      /** What stands below it, for as long as the media store keeps it. */
      readonly files?: readonly LocalFile[];
      /** Says nothing itself: that message is taken away. */
      readonly takesAway?: MessageId;
      /** Nothing new: the person gave an earlier message this text, or took it back. */
      readonly amends?: LocalAmendment;
      /** Nothing can be pressed below that message any more; a text replaces what it says. */
      readonly closes?: MessageId;
      /** No message: how a turn ended. The text is what it had written where no answer follows. */
      readonly ended?: EndedTurn;
      /** Epoch milliseconds. */
      readonly at: number;
    }
  /** Not durable; the newest picture is sent again to whoever connects while the turn runs. */
  | { readonly type: 'live'; readonly update: LiveUpdate };

/** What stays of a turn's live view beside its answers. */
export type EndedTurn = {
  readonly turn: TurnId;
  readonly kind: TurnOutcome['kind'];
  /** How many answers follow. */
  readonly answers: number;
  readonly tools: readonly ToolActivity[];
};

/** What a choice's token looks like. */
export const CHOICE_TOKEN = /^[A-Za-z0-9_-]{1,48}$/;

export type LocalChat = {
  readonly chat: string;
  /** First words of the first message. */
  readonly title: string;
  readonly updatedAt: number;
  /** Sequence number of the newest message. */
  readonly lastSeq: number;
};

/** A file as a message names it. */
export type LocalFileRef = { readonly media: MediaId; readonly name: string };

export type LocalFile = LocalFileRef & {
  readonly kind: AttachmentKind;
  /** Found in the content. */
  readonly mimeType: string;
  readonly sizeBytes: number;
};

/** A person's change of a message of theirs. */
export type LocalAmendment = Pick<Amendment, 'id' | 'kind'>;

export type LocalMessage = {
  readonly chat: string;
  /** Chosen by the page; makes a repeat harmless. */
  readonly clientId: string;
  /** Of a message that is taken back none. */
  readonly text: string;
  /** The token of a choice; the text is its label. */
  readonly press?: string;
  /** Uploaded before. */
  readonly files?: readonly LocalFileRef[];
  /** Of what the person typed in this chat; nothing that was pressed. */
  readonly amends?: LocalAmendment;
};

export interface LocalFiles {
  /** Largest file that is taken. */
  maxBytes(): number;
  /** @throws MediaError, ChannelClosedError */
  keep(name: string, content: AsyncIterable<Uint8Array>): Promise<LocalFile>;
  /** Undefined where it is not kept any more. @throws ChannelClosedError */
  read(media: MediaId): Promise<Uint8Array | undefined>;
}

export interface LocalChannel {
  /** Absent: the door carries no files. */
  readonly files?: LocalFiles;
  /**
   * A person said something. Resolves when it is durable.
   * @throws BusFullError, ChannelClosedError; LocalNameError also for a change of what is not there
   */
  submit(message: LocalMessage): Promise<'accepted' | 'duplicate'>;
  /**
   * Everything said after `afterSeq`, then what comes, until the signal aborts. A picture of a turn
   * that ended comes before the answers it announces. A reader who is ahead of the log (an older one
   * was restored) gets what comes. @throws LocalNameError
   */
  events(chat: string, afterSeq: number, signal: AbortSignal): AsyncIterable<LocalEvent>;
  /** Newest first. @throws ChannelClosedError while the gateway starts */
  chats(limit: number): Promise<readonly LocalChat[]>;
}

// The doors of our own as ways of one person: whoever holds the gateway's token or a login of the
// page sits at this machine, whichever of them they use.

export const LOCAL_CHANNELS: readonly LocalChannelSpec[] = [
  { channel: channelName('web'), id: userId('owner'), lasts: true },
  { channel: channelName('terminal'), id: userId('owner'), lasts: false },
];

/** Whoever decides by them. */
export const LOCAL_OWNER: PersonSender = {
  kind: 'person',
  id: userId('owner'),
  verified: 'verified',
};
