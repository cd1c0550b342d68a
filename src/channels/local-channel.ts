// CONTRACT of a local channel (web page, terminal): a chat surface on the same bus as any platform,
// with a durable log, so that a page that lost its connection resumes without loss. The holder of
// the gateway's token or of a login of the page is one person, the owner.

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
import type { AuditLog } from '../kernel/observe/telemetry.ts';
import type { LocalChannelSpec } from '../kernel/people/persons.ts';

/** The form of a chat and client id: safe in keys, URLs and file names. */
export const LOCAL_CHAT_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** The gateway is starting or stopping and accepts nothing; the same message may be sent again. */
export class ChannelClosedError extends NanobotError {
  override readonly name = 'ChannelClosedError';
  constructor(message: string) {
    super('door_closed', message);
  }
}

/** A chat or client id that is no LOCAL_CHAT_NAME, or the name of something that does not exist. */
export class LocalNameError extends NanobotError {
  override readonly name = 'LocalNameError';
  constructor(message: string) {
    super('door_name', message);
  }
}

export type LocalEvent =
  /** `seq` counts up within a chat; a reader resumes after the last one it saw. */
  | {
      readonly type: 'said';
      readonly seq: number;
      readonly id: MessageId;
      readonly from: 'person' | 'agent';
      /** The newest message that an answer answers. */
      readonly replyTo?: MessageId | undefined;
      /** Plain text of a person, Markdown of the agent. */
      readonly text: string;
      /** Buttons below it. */
      readonly choices?: readonly Choice[] | undefined;
      /** The token of the choice that the person pressed; the text is its label. */
      readonly press?: string | undefined;
      /** Its files, for as long as the media store keeps them. */
      readonly files?: readonly LocalFile[] | undefined;
      /** No text of its own: that message is removed. */
      readonly takesAway?: MessageId;
      /** No text of its own: a newer answer replaces that one, which stays readable. */
      readonly replaced?: MessageId;
      /**
       * No new message: the person replaced the text of an earlier one, deleted it, or wants another
       * answer to it.
       */
      readonly amends?: LocalAmendment | undefined;
      /** Removes the buttons below that message; a text replaces its text. */
      readonly closes?: MessageId;
      /** No message: how a turn ended. The text is what it had written if no answer follows. */
      readonly ended?: EndedTurn;
      /** Epoch milliseconds. */
      readonly at: number;
    }
  /** Not durable; the newest update is sent again to readers that connect while the turn runs. */
  | { readonly type: 'live'; readonly update: LiveUpdate };

/** What remains of a turn's live view beside its answers. */
type EndedTurn = {
  readonly turn: TurnId;
  readonly kind: TurnOutcome['kind'];
  /** Number of answers that follow. */
  readonly answers: number;
  readonly tools: readonly ToolActivity[];
};

/** The form of a choice's token. */
export const CHOICE_TOKEN = /^[A-Za-z0-9_-]{1,48}$/;

export type LocalChat = {
  readonly chat: string;
  /** First words of the first message, unless the person chose another. */
  readonly title: string;
  readonly updatedAt: number;
  /** Sequence number of the newest message. */
  readonly lastSeq: number;
};

/** What a person changes about a chat. */
export type LocalChatChange = { readonly title?: string; readonly isArchived?: boolean };

/** A file as a message names it. */
export type LocalFileRef = { readonly media: MediaId; readonly name: string };

export type LocalFile = LocalFileRef & {
  readonly kind: AttachmentKind;
  /** Detected from the content. */
  readonly mimeType: string;
  readonly sizeBytes: number;
};

/** A person's change of their own message, or their wish for another answer to it. */
export type LocalAmendment = Pick<Amendment, 'id' | 'kind'>;

export type LocalMessage = {
  readonly chat: string;
  /** Chosen by the page; makes a repeat harmless. */
  readonly clientId: string;
  /** Empty for a message that is deleted or to be answered again. */
  readonly text: string;
  /** The token of a choice; the text is its label. */
  readonly press?: string;
  /** Uploaded before. */
  readonly files?: readonly LocalFileRef[];
  /** Changes a message that the person typed in this chat; not a button press. */
  readonly amends?: LocalAmendment;
};

export interface LocalFiles {
  /** Largest accepted file. */
  maxBytes(): number;
  /** @throws MediaError, ChannelClosedError */
  keep(name: string, content: AsyncIterable<Uint8Array>): Promise<LocalFile>;
  /** Undefined if it is no longer stored. @throws ChannelClosedError */
  read(media: MediaId): Promise<Uint8Array | undefined>;
}

export interface LocalChannel {
  /** Absent: the channel carries no files. */
  readonly files?: LocalFiles;
  /**
   * Submits a person's message. Resolves when it is durable.
   * @throws BusFullError, ChannelClosedError; LocalNameError also for a change of a message that
   * does not exist
   */
  submit(message: LocalMessage): Promise<'accepted' | 'duplicate'>;
  /**
   * Everything said after `afterSeq`, then new events until the signal aborts. The last update of a
   * turn that ended comes before the answers it announces. A reader ahead of the log (an older one
   * was restored) gets new events only. @throws LocalNameError
   */
  events(chat: string, afterSeq: number, signal: AbortSignal): AsyncIterable<LocalEvent>;
  /** Newest first. @throws ChannelClosedError while the gateway starts */
  chats(limit: number, which?: 'open' | 'archived'): Promise<readonly LocalChat[]>;
  /** False if there is no such chat. @throws LocalNameError, ChannelClosedError */
  changeChat(chat: string, change: LocalChatChange): Promise<boolean>;
}

// The local channels as identities of one person: the holder of the gateway's token or of a login
// of the page has access to this machine, whichever channel they use.

export const LOCAL_CHANNELS: readonly LocalChannelSpec[] = [
  { channel: channelName('web'), id: userId('owner'), lasts: true },
  { channel: channelName('terminal'), id: userId('owner'), lasts: false },
];

/** The owner as sender on a local channel. */
export const LOCAL_OWNER: PersonSender = {
  kind: 'person',
  id: userId('owner'),
  verified: 'verified',
};

/** Notes in the audit what an owner does by the page or the API, in the words of a command. */
export const noteCommand = (audit: AuditLog, ...words: readonly string[]): void =>
  audit.note({ kind: 'command', fields: { command: words.join(' '), by: LOCAL_OWNER.id } });
