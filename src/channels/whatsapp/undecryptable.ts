// Messages that could not be decrypted. The library requests them again; the owner gets a notice
// about those that still have not come. Bounded: a flood is counted, not stored. Keys and sessions
// are never touched.

import { type BaileysEventEmitter, proto, type WAMessage } from '@whiskeysockets/baileys';
import { z } from 'zod';
import { RecentMap } from '../../lib/async.ts';
import { storedJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { nameOf } from './inbound.ts';
import { idOfPerson, isPerson, parseJid } from './rules/jid.ts';

export type Undecryptable = ReturnType<typeof createUndecryptable>;

const ROW = 'undecryptable';
const LOOK_EVERY_MS = 60_000;
/** Retries of the library take a few round trips, or until the other phone is online. */
const GIVE_UP_MS = 5 * 60_000;
/** The owner gets a notice about one person at most this often. */
const ALERT_AGAIN_MS = 3_600_000;
/** With more people than these, one notice covers all. */
const MAX_ALERTS = 3;
const MAX_PEOPLE = 100;
const MAX_IDS = 10;
const MAX_ARRIVED = 2000;
const MAX_ID_CHARS = 64;

type Peer = { readonly id: string; readonly name: string | undefined };
/** A person's messages that are given up. */
type Missing = Peer & { readonly count: number; readonly orMore: boolean };

type Page = {
  name: string | undefined;
  /** Message id to when it was first seen, epoch milliseconds. */
  readonly waiting: Map<string, number>;
  /** Messages that are not stored by id. */
  uncounted: number;
  /** When the owner got a notice, epoch milliseconds; 0: never. */
  toldAt: number;
};

const pageSchema = z.object({
  name: z.string().optional(),
  waiting: z.record(z.string(), z.number()),
  uncounted: z.number(),
  toldAt: z.number(),
});
const pagesSchema = z.array(z.tuple([z.string(), pageSchema]));

export function createUndecryptable(host: Pick<ChannelHost, 'state' | 'clock' | 'log' | 'alert'>) {
  const { state, clock, log } = host;
  const pages = new Map<string, Page>();
  const hasArrived = new RecentMap<string, true>(MAX_ARRIVED);
  /** Since the last run, by person. */
  const counts = new Map<string, number>();
  let messages = 0;
  let stored = '[]';

  function note(peer: Peer, id: string, isAlerted: boolean) {
    messages += 1;
    const count = counts.get(peer.id);
    if (count !== undefined || counts.size < MAX_PEOPLE) counts.set(peer.id, (count ?? 0) + 1);
    if (!isAlerted || hasArrived.has(id)) return;
    const page = pageOf(peer);
    if (page === undefined || page.waiting.has(id)) return;
    if (page.waiting.size < MAX_IDS && id.length <= MAX_ID_CHARS) {
      page.waiting.set(id, clock.now());
    } else page.uncounted += 1;
  }

  function pageOf({ id, name }: Peer): Page | undefined {
    const known = pages.get(id);
    if (known === undefined && pages.size >= MAX_PEOPLE) return undefined;
    const page = known ?? { name, waiting: new Map(), uncounted: 0, toldAt: 0 };
    page.name = name ?? page.name;
    pages.set(id, page);
    return page;
  }

  /** Takes those that the owner is notified of now. */
  function takeMissing(now: number): readonly Missing[] {
    const missing: Missing[] = [];
    for (const [id, page] of pages) {
      const lost = [...page.waiting].filter(([, at]) => at <= now - GIVE_UP_MS);
      const isRested = page.toldAt <= now - ALERT_AGAIN_MS;
      if (lost.length > 0 && isRested) {
        missing.push({ id, name: page.name, count: lost.length, orMore: page.uncounted > 0 });
        for (const [message] of lost) page.waiting.delete(message);
        page.uncounted = 0;
        page.toldAt = now;
      } else if (page.waiting.size === 0 && isRested) pages.delete(id);
    }
    return missing;
  }

  async function look() {
    if (messages > 0) {
      const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
      const tally = { messages, people: counts.size, most: most?.[0] ?? '' };
      log.warn('whatsapp messages could not be decrypted', tally);
      messages = 0;
      counts.clear();
    }
    for (const alert of alertsOf(takeMissing(clock.now()))) host.alert(alert);
    const rows = [...pages].map(([id, page]) => {
      return [id, { ...page, waiting: Object.fromEntries(page.waiting) }];
    });
    const text = JSON.stringify(rows);
    if (text === stored) return;
    await state.set(ROW, text);
    stored = text;
  }

  /** Restores what an earlier process was waiting for; a damaged row counts as none. */
  async function restore() {
    stored = (await state.get(ROW)) ?? stored;
    for (const [id, { name, ...page }] of storedJson(pagesSchema, stored) ?? []) {
      const waiting = Object.entries(page.waiting).filter(([message]) => !hasArrived.has(message));
      pages.set(id, { ...page, name, waiting: new Map(waiting) });
    }
  }

  function onUpsert({ messages }: { readonly messages: readonly WAMessage[] }) {
    for (const message of messages) {
      const { id } = message.key;
      if (id && isUnreadable(message)) note(peerOf(message), id, isWorthAlert(message));
    }
  }

  return {
    /** Watches a connection's stubs until disposed. */
    attach({ ev }: { readonly ev: Pick<BaileysEventEmitter, 'on' | 'off'> }): Disposable {
      ev.on('messages.upsert', onUpsert);
      return { [Symbol.dispose]: () => ev.off('messages.upsert', onUpsert) };
    },
    /** These messages came in readable form, before or after. */
    arrived(ids: readonly string[]): void {
      for (const id of ids) {
        hasArrived.set(id, true);
        for (const page of pages.values()) page.waiting.delete(id);
      }
    },
    /** Logs and sends notices once a minute, until aborted. */
    async run(signal: AbortSignal): Promise<void> {
      await restore();
      while (!signal.aborted) {
        await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
        await look();
      }
    },
  };
}

/** A stub, or a view-once message, which a linked device never gets. */
function isUnreadable(message: WAMessage): boolean {
  if (message.messageStubType === proto.WebMessageInfo.StubType.CIPHERTEXT) return true;
  return message.key.isViewOnce === true && !message.message;
}

/** Most messages in groups are not for the agent; the own phone sends clients' messages too. */
function isWorthAlert({ key }: WAMessage): boolean {
  return key.fromMe !== true && isPerson(parseJid(key.remoteJid));
}

function peerOf(message: WAMessage): Peer {
  const { key } = message;
  const jids = [key.participantAlt, key.remoteJidAlt, key.participant, key.remoteJid].map(parseJid);
  const person = jids.find((jid) => jid.kind === 'number') ?? jids.find(isPerson);
  const name = nameOf({ key: { fromMe: key.fromMe === true }, pushName: message.pushName });
  return { id: person !== undefined && isPerson(person) ? idOfPerson(person) : 'unknown', name };
}

function alertsOf(missing: readonly Missing[]): readonly string[] {
  if (missing.length <= MAX_ALERTS) return missing.map(alertOf);
  const named = missing.slice(0, MAX_ALERTS).map(whoOf).join(', ');
  return [t`could not read messages from ${missing.length} people, among them ${named}. ${ADVICE}`];
}

const ADVICE = t`I requested them again without success: ask the senders to send them again.`;

function alertOf(one: Missing): string {
  const isOne = one.count === 1 && !one.orMore;
  const count = isOne ? t`one message` : t`${one.count}${one.orMore ? t` or more` : ''} messages`;
  const advice = isOne
    ? t`I requested it again without success: ask the sender to send it again.`
    : ADVICE;
  return t`could not read ${count} from ${whoOf(one)}. ${advice}`;
}

const whoOf = ({ id, name }: Peer) => (name === undefined ? id : `${name} (${id})`);
