// What the simulated Telegram remembers: chats as the people in them see them, and the updates that
// wait for the bot. It outlives every gateway that connects to it.

import type { GroupInfo } from './bot-api-groups.ts';
import type { Entity } from './bot-api-html.ts';

/** One message as it stands in the chat now. */
export type SeenMessage = {
  readonly id: number;
  readonly from: 'person' | 'bot';
  /** Visible text: tags applied and gone. */
  readonly text: string;
  readonly entities: readonly Entity[];
  /** The body as the bot wrote it, tags included. */
  readonly source: string;
  readonly parseMode: string | undefined;
  readonly replyTo: number | undefined;
  /** The topic it stands in. */
  readonly thread?: number | undefined;
  /** What can be pressed below it, row by row. */
  readonly buttons?: readonly (readonly Button[])[] | undefined;
  /** What the bot sent with it; the text is its caption then. */
  readonly file?: SeenFile | undefined;
  /** Of the album it is part of. */
  readonly album?: string | undefined;
  /** The sign the bot has set on it. */
  readonly reaction?: string | undefined;
  /** How often it was changed after it appeared. */
  readonly edits: number;
  /** Epoch milliseconds, fractions kept. */
  readonly at: number;
  readonly changedAt: number;
};

export type SeenFile = {
  /** The field of Telegram's Message object, e.g. `photo`. */
  readonly kind: string;
  readonly name: string;
  readonly mimeType: string;
  readonly content: Buffer;
};

export type Button = { readonly text: string; readonly callback_data: string };

export type Person = {
  readonly id: number;
  readonly first_name: string;
  readonly last_name?: string;
  readonly username?: string;
  readonly is_bot?: boolean;
};

export type Update = { readonly update_id: number; readonly [kind: string]: unknown };

export type Chat = {
  readonly id: number;
  /** Oldest first; deleted ones are gone. */
  readonly messages: readonly SeenMessage[];
  readonly deleted: readonly SeenMessage[];
  /** `sendChatAction` calls. */
  readonly actions: readonly Action[];
  readonly isBlocked: boolean;
  /** Undefined for a private chat. */
  readonly group: GroupInfo | undefined;
  readonly topics: readonly number[];
  /** The supergroup it became. */
  readonly migratedTo: number | undefined;
};

export type SavedChat = Pick<Chat, 'id' | 'messages'>;

type Action = {
  readonly action: string;
  readonly at: number;
  readonly thread?: number | undefined;
};

type MutableChat = {
  id: number;
  messages: SeenMessage[];
  deleted: SeenMessage[];
  actions: Action[];
  isBlocked: boolean;
  group: GroupInfo | undefined;
  topics: number[];
  migratedTo: number | undefined;
};

export const nowMs = () => performance.timeOrigin + performance.now();

export class Ledger {
  readonly #chats = new Map<number, MutableChat>();
  readonly #listeners = new Set<() => void>();
  readonly #onMessage: ((chatId: number, message: SeenMessage) => void) | undefined;
  #updates: Update[] = [];
  #nextUpdateId = 700_000_001;
  #nextMessageId = 1;

  constructor(
    onMessage?: (chatId: number, message: SeenMessage) => void,
    saved: readonly SavedChat[] = [],
  ) {
    this.#onMessage = onMessage;
    for (const { id, messages } of saved) {
      this.open(id).messages.push(...messages);
      this.#nextMessageId = Math.max(this.#nextMessageId, ...messages.map((each) => each.id + 1));
    }
  }

  chat(id: number): MutableChat | undefined {
    return this.#chats.get(id);
  }

  open(id: number): MutableChat {
    let chat = this.#chats.get(id);
    if (chat === undefined) {
      chat = {
        id,
        messages: [],
        deleted: [],
        actions: [],
        isBlocked: false,
        group: undefined,
        topics: [],
        migratedTo: undefined,
      };
      this.#chats.set(id, chat);
    }
    return chat;
  }

  chats(): readonly Chat[] {
    return [...this.#chats.values()];
  }

  add(chatId: number, message: Omit<SeenMessage, 'id' | 'edits' | 'at' | 'changedAt'>) {
    const at = nowMs();
    const seen: SeenMessage = {
      ...message,
      id: this.#nextMessageId++,
      edits: 0,
      at,
      changedAt: at,
    };
    this.open(chatId).messages.push(seen);
    this.#onMessage?.(chatId, seen);
    this.changed();
    return seen;
  }

  change(chatId: number, id: number, content: Partial<SeenMessage>): SeenMessage | undefined {
    const { messages } = this.open(chatId);
    const index = messages.findIndex((message) => message.id === id);
    const old = messages[index];
    if (old === undefined) return undefined;
    const fresh = { ...old, ...content, edits: old.edits + 1, changedAt: nowMs() };
    messages[index] = fresh;
    this.#onMessage?.(chatId, fresh);
    this.changed();
    return fresh;
  }

  sign(chatId: number, id: number, reaction: string | undefined): boolean {
    const { messages } = this.open(chatId);
    const index = messages.findIndex((message) => message.id === id);
    const old = messages[index];
    if (old === undefined) return false;
    messages[index] = { ...old, reaction };
    this.changed();
    return true;
  }

  remove(chatId: number, id: number): boolean {
    const chat = this.open(chatId);
    const index = chat.messages.findIndex((message) => message.id === id);
    if (index === -1) return false;
    chat.deleted.push(...chat.messages.splice(index, 1));
    this.changed();
    return true;
  }

  takeMessageId(): number {
    return this.#nextMessageId++;
  }

  takeUpdateId(): number {
    return this.#nextUpdateId++;
  }

  /** The next update gets this id, as after a week of silence. */
  jumpTo(updateId: number): void {
    this.#nextUpdateId = updateId;
  }

  offer(update: Update): void {
    this.#updates.push(update);
    this.changed();
  }

  /** Telegram forgets every update below the offset; a negative one keeps the last of them. */
  confirm(offset: number | undefined): void {
    if (offset === undefined) return;
    this.#updates =
      offset < 0
        ? this.#updates.slice(offset)
        : this.#updates.filter((update) => update.update_id >= offset);
    this.changed();
  }

  waiting(limit: number): readonly Update[] {
    return this.#updates.slice(0, limit);
  }

  forgetUpdates(): void {
    this.#updates = [];
  }

  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
