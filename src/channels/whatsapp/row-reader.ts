// Rows of the ledger to messages that are handed over. All rows of a batch are learnt from before the first
// is judged: a number that the last one tells, or the owner's answer by hand, counts for all. The parts of an
// album become one message.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { chatId, userId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ChannelHost } from '../channel.ts';
import { albumOf, readWhatsApp, signOf, type WhatsAppReading } from './content.ts';
import { type LinkedAccount, ownIds } from './creds.ts';
import {
  gateOf,
  groupAddressing,
  type InboxRow,
  nameOf,
  type Place,
  placeOf,
  quoteOf,
  type Speaker,
  signFields,
  toEntry,
  type Unread,
  unreadableEntry,
  withoutOwnName,
} from './inbound.ts';
import { filesOfMessage } from './message.ts';
import type { OwnerPause } from './pacer.ts';
import type { People, Person } from './people.ts';
import { normaliseAllowed, personOfId, SELF, SELF_CHAT } from './rules/jid.ts';

/** One row of the ledger as it leaves; without an entry there is nothing to store. */
export type Parcel = { readonly arrival: string; readonly entry?: InboundEntry };

export type RowReaderDeps = {
  readonly people: People;
  readonly pause: OwnerPause;
  readonly unread: Unread;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: { readonly selfChat: boolean; readonly maxAgeHours: number };
  account(): LinkedAccount | undefined;
  /** Whether the agent itself sent the message of this id. */
  isOurs(id: string): Promise<boolean>;
};

export type ReadRow = Parcel & {
  /** To be marked as read once the agent works on it. */
  readonly unread?: WAMessageKey;
  /** Nobody could say whose number this LID is. */
  readonly isUnresolved?: boolean;
};

/** Talk to the agent, or undefined: not meant for it. */
type Learnt = {
  readonly row: InboxRow;
  readonly place: Exclude<Place, { readonly kind: 'elsewhere' }> | undefined;
  readonly reading: WhatsAppReading | undefined;
};

const HOUR_MS = 3_600_000;

export function createRowReader(deps: RowReaderDeps) {
  const { people, pause, unread, clock, log, settings } = deps;
  const albumCalls = createAlbumCalls();

  async function learn(row: InboxRow): Promise<Learnt> {
    const place = placeOf(row, deps.account());
    const reading = readWhatsApp(row.message);
    const isForUs = place.kind !== 'elsewhere' && (await isMeant(row, place, reading));
    if (!isForUs) log.debug('whatsapp message not for the agent', { kind: place.kind });
    return { row, place: isForUs ? place : undefined, reading };
  }

  /** Learns from the row whether or not it is meant for the agent. */
  async function isMeant(
    row: InboxRow,
    place: Exclude<Place, { readonly kind: 'elsewhere' }>,
    reading: WhatsAppReading | undefined,
  ): Promise<boolean> {
    const name = nameOf(row);
    const named = name === undefined ? {} : { name };
    switch (place.kind) {
      case 'unreadable':
        return true;
      case 'self':
        if (!settings.selfChat || (await deps.isOurs(row.key.id))) return false;
        await people.meetSelf(place.address);
        return true;
      case 'direct':
        if (place.fromMe) await noteByHand(row, place, reading);
        else await people.meet({ ...place, role: 'wrote', ...named });
        return !place.fromMe;
      case 'group':
      case 'list':
        if (!place.fromMe) await people.meet({ ...place, role: 'seen', ...named });
        return !place.fromMe;
    }
  }

  async function noteByHand(
    row: InboxRow,
    place: Extract<Place, { readonly kind: 'direct' }>,
    reading: WhatsAppReading | undefined,
  ): Promise<void> {
    if (reading === undefined || (await deps.isOurs(row.key.id))) return;
    const { chat, names } = await people.meet({ ...place, role: 'written_to' });
    await pause.note(chat, row.sentAt);
    // On the phone they are read already.
    unread.take(names);
    log.info('whatsapp owner wrote by hand', { chat });
  }

  async function judged({ row, place, reading }: Learnt): Promise<ReadRow> {
    const { arrival } = row;
    if (place === undefined) return { arrival };
    if (place.kind === 'unreadable') {
      log.warn('whatsapp sender not readable', { arrival });
      return { arrival, entry: unreadableEntry(row) };
    }
    const sign = signOf(row.message);
    if (sign?.kind === 'reacted' && !(await deps.isOurs(sign.id))) return { arrival };
    if (place.kind === 'self') {
      return { arrival, entry: await entryOf(row, reading, ownSpeaker(deps.account()), 0) };
    }
    const person = await people.meet({ address: place.address, role: 'seen' });
    const ownerUntil = place.kind === 'direct' ? await pause.until(person.names) : 0;
    const entry = await entryOf(row, reading, speakerOf(place, person, row), ownerUntil);
    if (place.kind === 'list') return { arrival, entry: { ...entry, ...UNDIRECTED } };
    if (entry.kind === 'record' || sign !== undefined) return { arrival, entry };
    // In a group nobody's number is needed who does not speak to us.
    const isUnresolved = place.kind === 'direct' && personOfId(person.id)?.kind === 'lid';
    return { arrival, entry, unread: keyOf(row), isUnresolved };
  }

  async function entryOf(
    row: InboxRow,
    reading: WhatsAppReading | undefined,
    speaker: Speaker,
    ownerUntil: number,
  ): Promise<InboundEntry> {
    const quotedId = reading?.quoted?.id;
    const isQuoteOurs = quotedId !== undefined && (await deps.isOurs(quotedId));
    const own = deps.account();
    const quote = quoteOf(row, reading, speaker, own, isQuoteOurs);
    const maxAgeMs = settings.maxAgeHours * HOUR_MS;
    const sign = signOf(row.message);
    const gate = gateOf(row, reading, { now: clock.now(), maxAgeMs, ownerUntil, sign });
    const text = reading?.text ?? '';
    const said = { ...filesOf(row, reading), ...quote, ...signFields(sign, speaker) };
    if (speaker.group === undefined) return toEntry(row, speaker, { text, ...said }, gate);
    // What is done to messages of ours, or of those that were for us, is for us.
    const isReply = sign !== undefined && sign.kind !== 'edited';
    const addressing = isReply ? 'reply' : groupAddressing(reading, isQuoteOurs, own);
    const words = { text: withoutOwnName(text, own), ...said };
    return toEntry(row, { ...speaker, addressing }, words, gate);
  }

  /** A mention below one picture of an album calls for all of it. */
  function calledTogether(rows: readonly InboxRow[], read: readonly ReadRow[]) {
    const keys = rows.map(albumKeyOf);
    const isSaid = ({ entry }: ReadRow) => entry?.kind === 'queue';
    return read.map((one, index) => {
      const key = keys[index];
      const { entry } = one;
      if (key === undefined || entry?.kind !== 'queue') return one;
      const parts = read.filter((part, at) => keys[at] === key && isSaid(part));
      const ways = parts.flatMap((part) => part.entry?.message.addressing ?? []);
      const message = { ...entry.message, addressing: albumCalls(key, ways) };
      return { ...one, entry: { ...entry, message } };
    });
  }

  return {
    async read(rows: readonly InboxRow[]): Promise<readonly ReadRow[]> {
      const learnt: Learnt[] = [];
      for (const row of rows) learnt.push(await learn(row));
      const result: ReadRow[] = [];
      for (const one of learnt) result.push(await judged(one));
      return calledTogether(rows, result);
    },
  };
}

function filesOf(
  { key }: InboxRow,
  { attachments, isOfAlbum }: Partial<WhatsAppReading> = {},
): Pick<InboundMessage, 'attachments' | 'mayContinue'> {
  if (attachments === undefined) return {};
  const files = filesOfMessage(attachments, key);
  return { attachments: files, ...(isOfAlbum === true ? { mayContinue: true } : {}) };
}

const UNDIRECTED = { kind: 'record', gate: 'sent to a list of people' } as const;

function speakerOf(
  place: Extract<Place, { readonly kind: 'direct' | 'group' | 'list' }>,
  person: Person,
  row: InboxRow,
): Speaker {
  const { id, alsoKnownAs } = person;
  const authorThen = person.chatAt(row.sentAt);
  if (place.kind === 'group') {
    const chat = chatId(place.group);
    const group = { ids: [chat] } as const;
    return { chat, chatThen: chat, authorThen, id, alsoKnownAs, addressing: 'ambient', group };
  }
  const chatThen = authorThen;
  return { chat: person.chat, chatThen, authorThen, id, alsoKnownAs, addressing: 'direct' };
}

function ownSpeaker(account: LinkedAccount | undefined): Speaker {
  return {
    chat: SELF_CHAT,
    chatThen: SELF,
    authorThen: SELF,
    id: userId(SELF),
    alsoKnownAs: ownIds(account).map(userId),
    addressing: 'direct',
  };
}

function keyOf({ key }: InboxRow): WAMessageKey {
  const { remoteJid, id, participant } = key;
  return { remoteJid, id, fromMe: false, ...(participant === undefined ? {} : { participant }) };
}

// People whose phone number WhatsApp does not tell: an allow list of numbers cannot know them, so they
// are refused, and the owner is told once who wrote and how to let them in.

export interface Unresolved {
  /** Somebody wrote of whom only the LID is known. */
  note(message: InboundMessage): Promise<void>;
}

export type UnresolvedDeps = {
  readonly host: Pick<ChannelHost, 'state' | 'clock' | 'alert' | 'isStranger'>;
  /** Who may write now, as configured. */
  allowFrom(): readonly string[];
};

const DAY_MS = 86_400_000;
/** Strangers must not be able to fill the owner's other channel. */
const MAX_PER_DAY = 20;

export function createUnresolved({ host, allowFrom }: UnresolvedDeps): Unresolved {
  const { state, clock } = host;
  let told: readonly number[] = [];

  return {
    async note(message) {
      const { sender } = message;
      if (sender.kind !== 'person' || !hasNumbers(allowFrom())) return;
      if (!(await host.isStranger(message))) return;
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

/** Only where somebody is let in by number can a known person look like a stranger. */
function hasNumbers(allowed: readonly string[]): boolean {
  return allowed.some((entry) => personOfId(normaliseAllowed(entry))?.kind === 'number');
}

function noticeOf(lid: string, name: string | undefined): string {
  const who = name === undefined ? lid : `"${name}" (${lid})`;
  return (
    `${who} wrote, and WhatsApp does not say which phone number that is, so the allow list ` +
    `cannot let them in. If you know them: nanobot pair approve whatsapp ${lid}`
  );
}

// Albums in groups: WhatsApp sends each picture as a message of its own, and a mention below one of them
// calls for all. So the parts stay in the ledger until no more come, and are then addressed alike. Pure
// but for what is remembered of parts that come later still.

/** How long the next part of an album is waited for, and how long all of them, milliseconds. */
const PART_WAIT_MS = 1500;
const WHOLE_WAIT_MS = 10_000;
const MAX_REMEMBERED = 100;
const RANK = { direct: 3, mention: 2, reply: 1, ambient: 0 } as const;

export type Ready = {
  readonly rows: readonly InboxRow[];
  /** After which the others are looked at again; undefined: there are no others. */
  readonly waitMs: number | undefined;
};

/** Leaves out albums that may still be coming, with all that was said behind them in their group. */
export function withoutOpenAlbums(rows: readonly InboxRow[], now: number): Ready {
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
export function albumKeyOf({ key, message }: InboxRow): string | undefined {
  if (!key.remoteJid.endsWith('@g.us')) return undefined;
  const album = albumOf(message);
  return album === undefined ? undefined : `${key.remoteJid}/${key.participant}/${album}`;
}

type Addressing = InboundMessage['addressing'];

/** The strongest way in which any part of the album was addressed so far. */
export type AlbumCalls = (key: string, addressings: readonly Addressing[]) => Addressing;

export function createAlbumCalls(): AlbumCalls {
  const called = new Map<string, Addressing>();
  return (key, addressings) => {
    const known = called.get(key) ?? 'ambient';
    const strongest = [known, ...addressings].reduce((one, other) =>
      RANK[other] > RANK[one] ? other : one,
    );
    called.delete(key);
    called.set(key, strongest);
    const [oldest] = called.keys();
    if (called.size > MAX_REMEMBERED && oldest !== undefined) called.delete(oldest);
    return strongest;
  };
}
