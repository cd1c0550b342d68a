// The readers of the chats of a built-in channel. A reader is told that the log has grown and reads it
// itself, so that no message is buffered or lost; of live previews it holds only the newest per turn.

import type { LiveUpdate } from '../../kernel/message/event.ts';
import type { TurnId } from '../../kernel/message/ids.ts';
import { createChange } from '../../lib/async.ts';

export class Readers {
  readonly #readers = new Map<string, Set<ChatReader>>();
  /** The newest picture of each running turn, for who comes later. */
  readonly #running = new Map<string, Map<TurnId, LiveUpdate>>();

  open(chat: string, signal: AbortSignal): ChatReader {
    const ofChat = this.#readers.get(chat) ?? new Set();
    const running = this.#running.get(chat)?.values() ?? [];
    const reader = new ChatReader(running, signal, () => {
      ofChat.delete(reader);
      if (ofChat.size === 0 && this.#readers.get(chat) === ofChat) this.#readers.delete(chat);
    });
    this.#readers.set(chat, ofChat.add(reader));
    return reader;
  }

  show(update: LiveUpdate): void {
    const { chat } = update.chat;
    const running = this.#running.get(chat) ?? new Map<TurnId, LiveUpdate>();
    if (update.phase === 'ended') running.delete(update.turnId);
    else running.set(update.turnId, update);
    if (running.size === 0) this.#running.delete(chat);
    else this.#running.set(chat, running);
    for (const reader of this.#readers.get(chat) ?? []) reader.show(update);
  }

  logHasGrown(chat: string): void {
    for (const reader of this.#readers.get(chat) ?? []) reader.logHasGrown();
  }
}

class ChatReader implements Disposable {
  readonly #pictures: Map<TurnId, LiveUpdate>;
  readonly #signal: AbortSignal;
  readonly #close: () => void;
  readonly #change = createChange();
  #hasGrown = true;
  #hasNews = false;

  constructor(running: Iterable<LiveUpdate>, signal: AbortSignal, close: () => void) {
    this.#pictures = new Map([...running].map((update) => [update.turnId, update]));
    this.#signal = signal;
    this.#close = close;
  }

  show(update: LiveUpdate): void {
    this.#pictures.set(update.turnId, update);
    this.#tell();
  }

  logHasGrown(): void {
    this.#hasGrown = true;
    this.#tell();
  }

  /** Whether there may be more in the log than when last asked. */
  takeGrowth(): boolean {
    const hasGrown = this.#hasGrown;
    this.#hasGrown = false;
    return hasGrown;
  }

  /** The newest picture since last asked of each turn that ended. */
  takeEndings(): readonly LiveUpdate[] {
    return this.#take(({ phase }) => phase === 'ended');
  }

  /** The newest picture since last asked of each turn that runs. */
  takeRunning(): readonly LiveUpdate[] {
    return this.#take(({ phase }) => phase !== 'ended');
  }

  /** Resolves when there is something new, or when the reader's signal aborts. */
  async arrival(): Promise<void> {
    if (!this.#hasNews) await this.#change.next(this.#signal).catch(() => undefined);
    this.#hasNews = false;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #tell(): void {
    this.#hasNews = true;
    this.#change.notify();
  }

  #take(isWanted: (update: LiveUpdate) => boolean): readonly LiveUpdate[] {
    const taken = [...this.#pictures.values()].filter(isWanted);
    for (const { turnId } of taken) this.#pictures.delete(turnId);
    return taken;
  }
}
