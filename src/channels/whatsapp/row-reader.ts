// Converts rows of the ledger to messages that are handed over. All rows of a batch are read before
// the first is judged: a number that the last one reveals, or the owner's answer by hand, applies
// to all. The parts of an album become one message.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { RecentMap } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { albumOf, readWhatsApp, signOf } from './content.ts';
import type { Contexts } from './context.ts';
import type { LinkedAccount } from './creds.ts';
import {
  entryOfRow,
  nameOf,
  ownSpeaker,
  type Place,
  placeOf,
  type ReadMessage,
  type Speaker,
  speakerOf,
  unreadableEntry,
} from './inbound.ts';
import type { LedgerRow } from './ledger.ts';
import type { OwnerPause } from './pacer.ts';
import type { People } from './people.ts';
import { normaliseAllowed, personOfId } from './rules/jid.ts';

export type RowReaderDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly people: People;
  readonly contexts: Pick<Contexts, 'heard'>;
  readonly pause: OwnerPause;
  /** The owner answered on the phone: messages in chats with these names are read already. */
  readByOwner(names: readonly string[]): void;
  readonly settings: { readonly selfChat: boolean; readonly maxAgeHours: number };
  account(): LinkedAccount | undefined;
  /** Whether the agent itself sent the message with this id. */
  isOurs(id: string): Promise<boolean>;
};

/** One row of the ledger to hand over; without an entry there is nothing to store. */
export type ReadRow = {
  readonly arrival: string;
  readonly entry?: InboundEntry;
  /** Marked as read once the agent works on it. */
  readonly unread?: WAMessageKey;
  /** The number of this LID is unknown. */
  readonly isUnresolved?: boolean;
};

/** A place where the agent is addressed; undefined: the message is not meant for it. */
type Meant = Exclude<Place, { readonly kind: 'elsewhere' }> | undefined;

const HOUR_MS = 3_600_000;

export function createRowReader(deps: RowReaderDeps) {
  const { people, pause, clock, log, settings } = deps;
  const albumCalls = createAlbumCalls();

  async function learn(row: LedgerRow): Promise<readonly [ReadMessage, Meant]> {
    const place = placeOf(row, deps.account());
    const reading = readWhatsApp(row.message);
    const read = { row, reading, sign: signOf(row.message) };
    if (place.kind !== 'elsewhere' && (await isMeant(read, place))) return [read, place];
    log.debug('whatsapp message not for the agent', { kind: place.kind });
    return [read, undefined];
  }

  /** Learns from the row whether or not it is meant for the agent. */
  async function isMeant(read: ReadMessage, place: NonNullable<Meant>): Promise<boolean> {
    if (place.kind === 'unreadable') return true;
    if (place.kind === 'self') {
      if (!settings.selfChat || (await deps.isOurs(read.row.key.id))) return false;
      await people.meetSelf(place.address);
      return true;
    }
    if (place.fromMe) {
      if (place.kind === 'direct') await noteByHand(read, place);
      return false;
    }
    const role = place.kind === 'direct' ? 'wrote' : 'seen';
    await people.meet({ ...place, role, name: nameOf(read.row) });
    return true;
  }

  async function noteByHand(
    { row, reading }: ReadMessage,
    place: Extract<Place, { readonly kind: 'direct' }>,
  ): Promise<void> {
    if (reading === undefined || (await deps.isOurs(row.key.id))) return;
    const { chat, names } = await people.meet({ ...place, role: 'written_to' });
    await pause.note(chat, row.sentAt);
    deps.readByOwner(names);
    log.info('whatsapp account owner wrote by hand', { chat });
  }

  async function judged(read: ReadMessage, place: Meant): Promise<ReadRow> {
    const { row, sign } = read;
    const { arrival } = row;
    if (place === undefined) return { arrival };
    if (place.kind === 'unreadable') {
      log.warn('whatsapp sender not readable', { arrival });
      return { arrival, entry: unreadableEntry(row) };
    }
    if (sign?.kind === 'reacted' && !(await deps.isOurs(sign.id))) return { arrival };
    if (place.kind === 'self') {
      return { arrival, entry: await entry(read, ownSpeaker(deps.account()), 0) };
    }
    const person = await people.meet({ address: place.address, role: 'seen' });
    const ownerUntil = place.kind === 'direct' ? await pause.until(person.names) : 0;
    const gate = place.kind === 'list' ? t`sent to a list of people` : undefined;
    const made = await entry(read, speakerOf(place, person, row), ownerUntil, gate);
    if (made.kind === 'record' || sign !== undefined) return { arrival, entry: made };
    // In a group, numbers are not needed of people who do not address the agent.
    const isUnresolved = place.kind === 'direct' && personOfId(person.id)?.kind === 'lid';
    return { arrival, entry: made, unread: keyOf(row), isUnresolved };
  }

  async function entry(
    read: ReadMessage,
    speaker: Speaker,
    ownerUntil: number,
    gate?: string,
  ): Promise<InboundEntry> {
    const { row, reading } = read;
    const quotedId = reading?.quoted?.id;
    const made = entryOfRow(read, speaker, {
      now: clock.now(),
      maxAgeMs: settings.maxAgeHours * HOUR_MS,
      ownerUntil,
      own: deps.account(),
      isQuoteOurs: quotedId !== undefined && (await deps.isOurs(quotedId)),
      gate,
    });
    if (reading !== undefined && made.kind === 'queue' && read.sign === undefined) {
      await deps.contexts.heard(made.message, row.key, reading.timer);
    }
    return made;
  }

  /** A mention below one picture addresses the whole album. */
  function calledTogether(rows: readonly LedgerRow[], read: readonly ReadRow[]) {
    const keys = rows.map(albumKeyOf);
    return read.map((one, index) => {
      const key = keys[index];
      if (key === undefined || one.entry?.kind !== 'queue') return one;
      const parts = read.filter(({ entry }, at) => keys[at] === key && entry?.kind === 'queue');
      const ways = parts.flatMap((part) => part.entry?.message.addressing ?? []);
      const message = { ...one.entry.message, addressing: albumCalls(key, ways) };
      return { ...one, entry: { ...one.entry, message } };
    });
  }

  return {
    async read(rows: readonly LedgerRow[]): Promise<readonly ReadRow[]> {
      const learnt: (readonly [ReadMessage, Meant])[] = [];
      for (const row of rows) learnt.push(await learn(row));
      const result: ReadRow[] = [];
      for (const [read, place] of learnt) result.push(await judged(read, place));
      return calledTogether(rows, result);
    },
  };
}

function keyOf({ key }: LedgerRow): WAMessageKey {
  const { remoteJid, id, participant } = key;
  return { remoteJid, id, fromMe: false, ...(participant === undefined ? {} : { participant }) };
}

// People whose phone number WhatsApp does not reveal: an allow list of numbers cannot match them,
// so they are refused, and the owner gets one notice about who wrote and how to let them in.

export type Unresolved = ReturnType<typeof createUnresolved>;

type UnresolvedDeps = {
  readonly host: Pick<ChannelHost, 'state' | 'clock' | 'alert' | 'isUnknownSender'>;
  /** The current allow list. */
  allowFrom(): readonly string[];
};

const DAY_MS = 86_400_000;
/** Unknown senders must not flood the owner's other channel. */
const MAX_PER_DAY = 20;

export function createUnresolved({ host, allowFrom }: UnresolvedDeps) {
  const { state, clock } = host;
  let told: readonly number[] = [];

  return {
    /** A message came from a person of whom only the LID is known. */
    async note(message: InboundMessage): Promise<void> {
      const { sender } = message;
      if (sender.kind !== 'person' || !hasNumbers(allowFrom())) return;
      if (!(await host.isUnknownSender(message))) return;
      const key = `person/told/${sender.id}`;
      const now = clock.now();
      told = told.filter((at) => at > now - DAY_MS);
      if (told.length >= MAX_PER_DAY || (await state.get(key)) !== undefined) return;
      told = [...told, now];
      host.alert(noticeOf(sender.id, sender.name));
      await state.set(key, String(now));
    },
  };
}

/** Only if somebody is allowed by number can a known person look like an unknown sender. */
function hasNumbers(allowed: readonly string[]): boolean {
  return allowed.some((entry) => personOfId(normaliseAllowed(entry))?.kind === 'number');
}

function noticeOf(lid: string, name: string | undefined): string {
  const who = name === undefined ? lid : `"${name}" (${lid})`;
  return (
    t`${who} wrote, but WhatsApp does not say their phone number, so the allow list ` +
    t`cannot let them in. If you know them: nanobot pair approve whatsapp ${lid}`
  );
}

// Albums in groups: WhatsApp sends each picture as a message of its own, and a mention below one of
// them addresses all. So the parts stay in the ledger until no more come, and then have the same
// addressing. Pure except for the memory of albums whose parts come later still.

/** How long the next part of an album is waited for, and how long all of them, milliseconds. */
const PART_WAIT_MS = 1500;
const WHOLE_WAIT_MS = 10_000;
const MAX_REMEMBERED = 100;
const RANK = { direct: 3, mention: 2, reply: 1, ambient: 0 } as const;

/**
 * Leaves out albums that may be incomplete, with everything after them in their group. `waitMs`:
 * when to look at them again; undefined: there are none.
 */
export function withoutOpenAlbums(rows: readonly LedgerRow[], now: number) {
  const waits = new Map<string, number>();
  for (const [key, parts] of Map.groupBy(rows, albumKeyOf)) {
    if (key === undefined) continue;
    const times = parts.map(({ receivedAt }) => receivedAt);
    const dueAt = Math.min(Math.max(...times) + PART_WAIT_MS, Math.min(...times) + WHOLE_WAIT_MS);
    if (dueAt > now) waits.set(key, dueAt - now);
  }
  if (waits.size === 0) return { rows, waitMs: undefined };
  const closed = new Set<string>();
  const ready = rows.filter((row) => {
    const key = albumKeyOf(row);
    if (key !== undefined && waits.has(key)) closed.add(row.key.remoteJid);
    return !closed.has(row.key.remoteJid);
  });
  return { rows: ready, waitMs: Math.min(...waits.values()) };
}

/** Undefined for what is no part of an album in a group. */
function albumKeyOf({ key, message }: LedgerRow): string | undefined {
  if (!key.remoteJid.endsWith('@g.us')) return undefined;
  const album = albumOf(message);
  return album === undefined ? undefined : `${key.remoteJid}/${key.participant}/${album}`;
}

type Addressing = InboundMessage['addressing'];

/** Returns the strongest addressing of any part of the album so far. */
function createAlbumCalls() {
  const called = new RecentMap<string, Addressing>(MAX_REMEMBERED);
  return (key: string, addressings: readonly Addressing[]): Addressing => {
    const known = called.get(key) ?? 'ambient';
    const strongest = [known, ...addressings].reduce((one, other) =>
      RANK[other] > RANK[one] ? other : one,
    );
    called.set(key, strongest);
    return strongest;
  };
}
