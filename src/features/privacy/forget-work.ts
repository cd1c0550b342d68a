// Carries out what a person wants forgotten. That takes long where much is kept, and nobody else waits
// for it: after a moment it goes on behind, and the person hears of it when nothing is left. A wish that
// was decided stays until then, so that a kill in between has all of it done again.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { flag, object, place, rowShape } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { aborted, type Clock } from '../../lib/time/clock.ts';
import type { ForgetReport, Forgetting, Reach } from './personal-data.ts';

export type ForgetWorkDeps = {
  readonly kept: Pick<Forgetting, 'forget' | 'scrub'>;
  readonly rows: OpenRows;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A wish to forget, and where it was uttered. */
type Wish = { readonly reach: Reach; readonly chat: ChatRef; readonly isDecided: boolean };

const WISH = rowShape<Wish>({ reach: object, chat: place, isDecided: flag });
/** How long whoever pressed waits, and all that comes by the same door behind it. */
const SOON_MS = 2000;
const AGAIN_MS = 60_000;
const AT_IT = 'I take it out now. There is much to look through: I tell you when nothing is left.';

export class ForgetWork {
  readonly #deps: ForgetWorkDeps;
  readonly #wishes: Rows<Wish>;
  readonly #running = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  constructor(deps: ForgetWorkDeps) {
    this.#deps = deps;
    this.#wishes = deps.rows({ ...jsonRows(WISH), scope: 'forget', prefix: '' });
  }

  async keep(id: string, wish: Omit<Wish, 'isDecided'>): Promise<void> {
    await this.#wishes.change(id, () => ({ ...wish, isDecided: false }));
  }

  async drop(id: string): Promise<void> {
    await this.#wishes.change(id, () => 'remove');
  }

  /** The words for the person; undefined where there is no such wish. */
  async decided(id: string): Promise<string | undefined> {
    const { clock } = this.#deps;
    const wish = await this.#wishes.change(id, (each) => each && { ...each, isDecided: true });
    if (wish === undefined) return undefined;
    const work = this.#work(id, wish);
    const enough = new AbortController();
    const soon = clock.sleep(SOON_MS, enough.signal).catch(() => undefined);
    const words = await Promise.race([work, soon]);
    enough.abort();
    if (words !== undefined) return words;
    void this.#tellLater(id, wish);
    return AT_IT;
  }

  /** Takes up what an earlier process left, where the question itself is not carried out again. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(SOON_MS, signal).catch(() => undefined);
    for (const [id, wish] of signal.aborted ? [] : await this.#wishes.entries()) {
      if (wish.isDecided && !this.#running.has(id)) void this.#tellLater(id, wish);
    }
    await aborted(signal);
    this.#closing.abort();
    await Promise.allSettled(this.#running.values());
  }

  /** The same work however often it is asked for. */
  #work(id: string, { reach }: Wish): Promise<string> {
    const known = this.#running.get(id);
    if (known !== undefined) return known;
    const work = this.#forget(id, reach).finally(() => this.#running.delete(id));
    this.#running.set(id, work);
    return work;
  }

  async #forget(id: string, reach: Reach): Promise<string> {
    const { kept } = this.#deps;
    const report = await kept.forget(reach);
    await this.drop(id);
    await kept.scrub();
    return wordsFor(report);
  }

  async #tellLater(id: string, wish: Wish): Promise<void> {
    const { bus, clock, log } = this.#deps;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const markdown = await this.#work(id, wish);
        await bus.send({ id: messageId(`forget/${id}/done`), chat: wish.chat, markdown });
        return;
      } catch (error) {
        log.error('not forgotten yet', { wish: id, error });
        await clock.sleep(AGAIN_MS, signal).catch(() => undefined);
      }
    }
  }
}

function wordsFor({ noteLines, entries, texts }: ForgetReport): string {
  return (
    `Forgotten: ${countOf(noteLines, 'line')} of notes, ${countOf(entries, 'message')} in ` +
    `conversations, ${countOf(texts, 'text')} in the queues, and what the index held of them. What ` +
    'stands in the chat itself, at the platform or at the model provider, in files that came or went, in ' +
    'other files of the workspace (also in those that I wrote, such as notes/), in the sealed record of ' +
    'what was done, or in backups of this machine, I cannot take back.'
  );
}

const countOf = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
