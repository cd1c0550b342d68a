// Messages that could not be decrypted. The library asks for them again; the owner is told of those that
// still have not come. Bounded: a flood is counted, not kept. Keys and sessions are never touched.

import { type BaileysEventEmitter, proto, type WAMessage } from '@whiskeysockets/baileys';
import { z } from 'zod';
import type { ChannelHost } from '../channel.ts';
import { nameOf } from './inbound.ts';
import { storedJson } from './rows.ts';
import { idOfPerson, isPerson, parseJid } from './rules/jid.ts';

export interface Undecryptable {
  /** Watches a connection's stubs until disposed. */
  attach(socket: { readonly ev: Pick<BaileysEventEmitter, 'on' | 'off'> }): Disposable;
  /** These messages came in readable form. */
  arrived(ids: readonly string[]): void;
  /** Logs and tells once a minute, until aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const ROW = 'undecryptable';
const LOOK_EVERY_MS = 60_000;
/** More people than these are told of in one sentence. */
const MAX_NOTICES = 3;

export function createUndecryptable(
  host: Pick<ChannelHost, 'state' | 'clock' | 'log' | 'alert'>,
): Undecryptable {
  const { state, clock, log } = host;
  const book = new UnreadableBook();

  function onUpsert({ messages }: { readonly messages: readonly WAMessage[] }) {
    for (const message of messages) {
      if (!isUnreadable(message)) continue;
      const { id } = message.key;
      if (id) book.add(peerOf(message), id, clock.now(), isWorthTelling(message));
    }
  }

  async function look() {
    const tally = book.takeTally();
    if (tally !== undefined) log.warn('whatsapp messages could not be decrypted', tally);
    for (const notice of noticesOf(book.takeMissing(clock.now()))) host.alert(notice);
    const changed = book.takeChange();
    if (changed !== undefined) await state.set(ROW, changed);
  }

  return {
    attach({ ev }) {
      ev.on('messages.upsert', onUpsert);
      return { [Symbol.dispose]: () => ev.off('messages.upsert', onUpsert) };
    },
    arrived(ids) {
      for (const id of ids) book.arrived(id);
    },
    async run(signal) {
      const stored = await state.get(ROW);
      if (stored !== undefined) book.restore(stored);
      while (!signal.aborted) {
        await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
        await look();
      }
    },
  };
}

/** A stub, or a message to be viewed once, which a linked device is never given. */
function isUnreadable(message: WAMessage): boolean {
  if (message.messageStubType === proto.WebMessageInfo.StubType.CIPHERTEXT) return true;
  return message.key.isViewOnce === true && !message.message;
}

/** In a group most messages are not for the agent, and from our own phone come programs' messages too. */
function isWorthTelling({ key }: WAMessage): boolean {
  return key.fromMe !== true && isPerson(parseJid(key.remoteJid));
}

function peerOf(message: WAMessage): Peer {
  const { key } = message;
  const jids = [key.participantAlt, key.remoteJidAlt, key.participant, key.remoteJid].map(parseJid);
  const person = jids.find((jid) => jid.kind === 'number') ?? jids.find(isPerson);
  const name = nameOf({ key: { fromMe: key.fromMe === true }, pushName: message.pushName });
  return { id: person !== undefined && isPerson(person) ? idOfPerson(person) : 'unknown', name };
}

function noticesOf(missing: readonly Missing[]): readonly string[] {
  if (missing.length <= MAX_NOTICES) return missing.map(noticeOf);
  const named = missing.slice(0, MAX_NOTICES).map(whoOf).join(', ');
  return [`could not read messages from ${missing.length} people, among them ${named}. ${ADVICE}`];
}

const ADVICE = 'They were asked for again and did not come: ask for them to be sent once more.';

function noticeOf(one: Missing): string {
  const isOne = one.count === 1 && !one.orMore;
  const count = isOne ? 'one message' : `${one.count}${one.orMore ? ' or more' : ''} messages`;
  const advice = isOne
    ? 'It was asked for again and did not come: ask for it to be sent once more.'
    : ADVICE;
  return `could not read ${count} from ${whoOf(one)}. ${advice}`;
}

const whoOf = ({ id, name }: Peer) => (name === undefined ? id : `${name} (${id})`);

// Which messages could not be read and have not come since, per person. Bounded: a flood is counted,
// not kept. Plain bookkeeping; when to look and whom to tell is for undecryptable.ts.

export type Peer = { readonly id: string; readonly name: string | undefined };
/** Messages of one person that are given up. */
export type Missing = Peer & { readonly count: number; readonly orMore: boolean };
type Tally = { readonly messages: number; readonly people: number; readonly most: string };

type Page = {
  name: string | undefined;
  /** Message id to when it was first seen, epoch milliseconds. */
  readonly waiting: Map<string, number>;
  /** More than are kept by id. */
  uncounted: number;
  /** Epoch milliseconds; 0: never. */
  toldAt: number;
};

const pagesSchema = z.array(
  z.tuple([
    z.string(),
    z.object({
      name: z.string().optional(),
      waiting: z.record(z.string(), z.number()),
      uncounted: z.number(),
      toldAt: z.number(),
    }),
  ]),
);

/** Retries of the library take a few round trips, or until the other phone is online. */
const GIVE_UP_MS = 5 * 60_000;
/** A person is told of at most this often. */
const TELL_AGAIN_MS = 3_600_000;
const MAX_PEOPLE = 100;
const MAX_IDS = 10;
const MAX_ARRIVED = 2000;
const MAX_ID_CHARS = 64;

export class UnreadableBook {
  readonly #pages = new Map<string, Page>();
  readonly #arrived = new Set<string>();
  #messages = 0;
  readonly #counts = new Map<string, number>();
  #isChanged = false;

  /** Could not be read. `isTold`: its loss is something to tell. */
  add(peer: Peer, id: string, at: number, isTold: boolean): void {
    this.#messages += 1;
    const count = this.#counts.get(peer.id);
    if (count !== undefined || this.#counts.size < MAX_PEOPLE) {
      this.#counts.set(peer.id, (count ?? 0) + 1);
    }
    if (!isTold || this.#arrived.has(id)) return;
    const page = this.#pageOf(peer);
    if (page === undefined || page.waiting.has(id)) return;
    this.#isChanged = true;
    if (page.waiting.size < MAX_IDS && id.length <= MAX_ID_CHARS) page.waiting.set(id, at);
    else page.uncounted += 1;
  }

  /** Came in readable form, before or after. */
  arrived(id: string): void {
    this.#arrived.delete(id);
    this.#arrived.add(id);
    const [oldest] = this.#arrived;
    if (this.#arrived.size > MAX_ARRIVED && oldest !== undefined) this.#arrived.delete(oldest);
    for (const page of this.#pages.values()) {
      if (page.waiting.delete(id)) this.#isChanged = true;
    }
  }

  /** Takes out what is to be told now. */
  takeMissing(now: number): readonly Missing[] {
    const missing: Missing[] = [];
    for (const [id, page] of this.#pages) {
      const lost = [...page.waiting].filter(([, at]) => at <= now - GIVE_UP_MS);
      const isRested = page.toldAt <= now - TELL_AGAIN_MS;
      if (lost.length > 0 && isRested) {
        missing.push({ id, name: page.name, count: lost.length, orMore: page.uncounted > 0 });
        for (const [message] of lost) page.waiting.delete(message);
        page.uncounted = 0;
        page.toldAt = now;
        this.#isChanged = true;
      } else if (page.waiting.size === 0 && isRested) {
        this.#pages.delete(id);
        this.#isChanged = true;
      }
    }
    return missing;
  }

  /** What came since the last call; undefined: nothing. */
  takeTally(): Tally | undefined {
    if (this.#messages === 0) return undefined;
    const [most] = [...this.#counts].toSorted(([, a], [, b]) => b - a);
    const tally = { messages: this.#messages, people: this.#counts.size, most: most?.[0] ?? '' };
    this.#messages = 0;
    this.#counts.clear();
    return tally;
  }

  /** The pages as text where they changed since the last call. */
  takeChange(): string | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const pages: z.infer<typeof pagesSchema> = [...this.#pages].map(([id, page]) => [
      id,
      { ...page, waiting: Object.fromEntries(page.waiting) },
    ]);
    return JSON.stringify(pages);
  }

  /** Takes up what an earlier process was waiting for; damaged, it is begun anew. */
  restore(text: string): void {
    for (const [id, page] of storedJson(pagesSchema, text) ?? []) {
      const waiting = Object.entries(page.waiting).filter(
        ([message]) => !this.#arrived.has(message),
      );
      this.#pages.set(id, { ...page, name: page.name, waiting: new Map(waiting) });
    }
  }

  #pageOf(peer: Peer): Page | undefined {
    const known = this.#pages.get(peer.id);
    if (known !== undefined) {
      known.name = peer.name ?? known.name;
      return known;
    }
    if (this.#pages.size >= MAX_PEOPLE) return undefined;
    const page: Page = { name: peer.name, waiting: new Map(), uncounted: 0, toldAt: 0 };
    this.#pages.set(peer.id, page);
    return page;
  }
}
