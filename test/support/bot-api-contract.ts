// What a test sees of the simulated Telegram.

import type { ArmedFault, Call, FaultRule } from './bot-api-faults.ts';
import type { GroupInfo } from './bot-api-groups.ts';
import type { Chat, Person, SavedChat, SeenMessage, Update } from './bot-api-ledger.ts';

export type BotApiOptions = {
  readonly token?: string;
  readonly port?: number;
  readonly bot?: Person;
  /** Longest a poll waits, whatever it asks for; milliseconds. */
  readonly maxPollMs?: number;
  /** Sends and edits one chat may get within a second before 429; default unlimited. */
  readonly perChatPerSecond?: number;
  /** How the chats stood at an earlier server whose bot goes on here. */
  readonly chats?: readonly SavedChat[];
  /** Every message, when it appears and when it changes. */
  readonly onMessage?: (chatId: number, message: SeenMessage) => void;
};

export type SayOptions = {
  readonly chatId?: number;
  /** A message of the same chat that this one answers. */
  readonly replyTo?: SeenMessage;
  /** The topic of a forum. */
  readonly thread?: number;
  /** Further fields of Telegram's Message object. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Epoch seconds; default now. */
  readonly date?: number;
};

export type SentFile = {
  readonly field:
    | 'photo'
    | 'video'
    | 'video_note'
    | 'animation'
    | 'audio'
    | 'voice'
    | 'sticker'
    | 'document';
  readonly content: Buffer | { readonly size: number };
  readonly caption?: string;
  /** Further fields of Telegram's file object. */
  readonly extra?: Readonly<Record<string, unknown>>;
};

export type BotApi = AsyncDisposable & {
  readonly token: string;
  readonly bot: Person;
  /** For `channels.telegram.apiRoot`. */
  readonly apiRoot: string;
  readonly port: number;
  /** A private message; the person and the chat come into being by it. */
  say(user: number | Person, text: string, options?: SayOptions): Update;
  /**
   * A private message with a file, as `field` of Telegram's Message object. Without content it is
   * one of that size that nobody can download.
   */
  sendFile(user: number | Person, file: SentFile, options?: SayOptions): Update;
  /** Several in one album. */
  sendAlbum(user: number | Person, files: readonly SentFile[], options?: SayOptions): Update[];
  /** Paths handed out by getFile lead nowhere any more. */
  expirePaths(): void;
  /** A group comes into being, with the bot in it. Its members write by `say` with its `chatId`. */
  group(id: number, options?: Partial<GroupInfo>): Chat;
  /** Somebody puts the bot into the group, and Telegram tells it. */
  addBot(chatId: number, by: Person): Update;
  /** A new topic of a forum; its id. */
  topic(chatId: number): number;
  removeTopic(chatId: number, thread: number): void;
  /** The group becomes a supergroup of this id; `isTold`: the bot gets the service messages. */
  migrate(chatId: number, to: number, isTold: boolean): void;
  /** Somebody presses the button of that label; `isOld`: Telegram shows the bot the message no more. */
  press(
    user: number | Person,
    chatId: number,
    label: string,
    options?: { readonly isOld?: boolean },
  ): Update;
  /** The author changes a message they wrote. */
  edit(update: Update, text: string): Update;
  /** Somebody reacts to a message of the bot, or takes it back. */
  react(user: number | Person, chatId: number, id: number, emoji: string | undefined): void;
  /** The message is too old for the bot to delete. */
  age(id: number): void;
  /** Presses whose button still waits for the bot. */
  readonly pressed: ReadonlySet<string>;
  /** What was shown at pressed buttons, in order; empty where nothing was. */
  readonly toasts: readonly string[];
  /** Any update at all, malformed ones included. */
  offer(update: Readonly<Record<string, unknown>>): Update;
  chat(id: number): Chat;
  chats(): readonly Chat[];
  /** The next message of the bot in this chat behind those already handed out here. */
  nextMessage(chatId: number, timeoutMs?: number): Promise<SeenMessage>;
  /** Resolves with the first defined value; looks again after every change. */
  waitFor<T>(look: () => T | undefined | false, timeoutMs?: number): Promise<T>;
  fail(rule: FaultRule): ArmedFault;
  setWebhook(url: string): void;
  block(chatId: number): void;
  /** Undoes `block`. */
  unblock(chatId: number): void;
  /** The next update gets this id. */
  jumpTo(updateId: number): void;
  /** Gives another token; the old one is refused from now on. */
  revoke(): void;
  /** Takes the message away as its author can. */
  erase(chatId: number, id: number): void;
  /** Updates that no poll has confirmed yet. */
  readonly unconfirmed: readonly Update[];
  readonly commands: readonly unknown[];
  readonly calls: readonly Call[];
  readonly violations: readonly string[];
  /** Edits refused because the message showed that text already. */
  readonly unmodified: number;
};
