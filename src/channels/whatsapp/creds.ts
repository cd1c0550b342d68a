// The account's credentials, one row per generation: every change writes a new row, so that a damaged or bad
// newest one still has predecessors. Earlier links are kept aside, newest few; one spare pre-key is on disk
// before it is asked for. The vault chooses the generation.

import {
  type AuthenticationCreds,
  BufferJSON,
  Curve,
  initAuthCreds,
  jidDecode,
} from '@whiskeysockets/baileys';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { seal, unseal } from './rows.ts';
import { idOfPerson, type PersonJid } from './rules/jid.ts';
import { encodeKey, KEY_PREFIX, keyRow, PRE_KEY_PREFIX, preKeyIdOf } from './signal-keys.ts';

export const CREDS_PREFIX = 'creds/';
const DAMAGED_PREFIX = 'creds-damaged/';
const NUMBER_DIGITS = 12;
/** Newest generations kept, beside the newest that opened a connection. */
const GENERATIONS_KEPT = 3;

export type Generation = {
  readonly number: number;
  readonly text: string;
  /** When it opened a connection, epoch milliseconds. */
  readonly openedAt?: number;
};

export type StoredGenerations = {
  /** Readable ones, newest first. */
  readonly intact: readonly Generation[];
  /** Rows that are there and cannot be read, newest first. */
  readonly damaged: readonly { readonly number: number; readonly row: KeyValueChange }[];
};

export async function readGenerations(state: KeyValueStore): Promise<StoredGenerations> {
  const intact: Generation[] = [];
  const damaged: { number: number; row: KeyValueChange }[] = [];
  for (const row of await state.list(CREDS_PREFIX, { newestFirst: true })) {
    const number = Number.parseInt(row.key.slice(CREDS_PREFIX.length), 10) || 0;
    const read = parseRow(row.key, row.value);
    if (read === undefined) damaged.push({ number, row });
    else intact.push({ number, ...read });
  }
  return { intact, damaged };
}

export function credsOf(generation: Generation): AuthenticationCreds {
  return JSON.parse(generation.text, BufferJSON.reviver);
}

export function textOf(creds: AuthenticationCreds): string {
  return JSON.stringify(creds, BufferJSON.replacer);
}

/** Moves unreadable rows out of the way of later generations; they are kept for whoever looks. */
export function setAsideRows(damaged: StoredGenerations['damaged']): readonly KeyValueChange[] {
  return damaged.flatMap(({ row: { key, value } }) => [
    { key: DAMAGED_PREFIX + key.slice(CREDS_PREFIX.length), value },
    { key, value: undefined },
  ]);
}

/** Rows of a change, and what to call once they are on disk. */
export type CredsChange = { readonly rows: readonly KeyValueChange[]; applied(): void };

export class CredsGenerations {
  /** Newest first. */
  #kept: readonly Generation[];
  /** What the newest holds, or what is not worth a first row yet. */
  #text: string;
  #number: number;

  /** `initialText`: content that needs no row as long as nothing changes. */
  constructor(stored: StoredGenerations, initialText = '') {
    const numbers = [...stored.intact, ...stored.damaged].map(({ number }) => number);
    this.#kept = stored.intact;
    this.#number = Math.max(0, ...numbers);
    this.#text = stored.intact[0]?.text ?? initialText;
  }

  /** 0 while nothing was written. */
  get number(): number {
    return this.#number;
  }

  get newest(): Generation | undefined {
    return this.#kept[0];
  }

  get lastOpened(): Generation | undefined {
    return this.#kept.find(({ openedAt }) => openedAt !== undefined);
  }

  /** A new generation where the content changed. */
  change(creds: AuthenticationCreds): CredsChange | undefined {
    const text = textOf(creds);
    return text === this.#text ? undefined : this.#write({ number: this.#number + 1, text });
  }

  /** The first row of an identity although nothing changed: keys must never stand without it. */
  first(creds: AuthenticationCreds): CredsChange {
    return this.#write({ number: this.#number + 1, text: textOf(creds) });
  }

  /** Marks the content as one that opened; nothing to do where it is marked already. */
  confirm(creds: AuthenticationCreds, openedAt: number): CredsChange | undefined {
    const text = textOf(creds);
    const newest = this.newest;
    if (text !== newest?.text) return this.#write({ number: this.#number + 1, text, openedAt });
    return newest.openedAt === undefined ? this.#write({ ...newest, openedAt }) : undefined;
  }

  #write(generation: Generation): CredsChange {
    const others = this.#kept.filter(({ number }) => number !== generation.number);
    const all = [generation, ...others];
    const opened = all.find(({ openedAt }) => openedAt !== undefined);
    const kept = all.filter((one, place) => place < GENERATIONS_KEPT || one === opened);
    const dropped = all.filter((one) => !kept.includes(one));
    return {
      rows: [
        rowOf(generation),
        ...dropped.map(({ number }) => ({ key: keyOf(number), value: undefined })),
      ],
      applied: () => {
        this.#kept = kept;
        this.#number = generation.number;
        this.#text = generation.text;
      },
    };
  }
}

/** Credentials in use, and what is stored of them. */
export type Identity = {
  readonly creds: AuthenticationCreds;
  readonly generations: CredsGenerations;
  /** The newest generation, where it could not be read. */
  readonly recoveredFrom: number | undefined;
};

/** Not worth a row as long as nothing changes. */
export function freshIdentity(): Identity {
  const creds = initAuthCreds();
  const generations = new CredsGenerations({ intact: [], damaged: [] }, textOf(creds));
  return { creds, generations, recoveredFrom: undefined };
}

const keyOf = (number: number) => CREDS_PREFIX + String(number).padStart(NUMBER_DIGITS, '0');

function rowOf({ number, text, openedAt }: Generation): KeyValueChange {
  const key = keyOf(number);
  return { key, value: seal(key, `${JSON.stringify({ v: 1, openedAt })}\n${text}`) };
}

function parseRow(key: string, value: string): Omit<Generation, 'number'> | undefined {
  const sealed = unseal(key, value);
  if (sealed === undefined) return undefined;
  const end = sealed.indexOf('\n');
  try {
    const { openedAt } = JSON.parse(sealed.slice(0, end));
    const text = sealed.slice(end + 1);
    const creds = JSON.parse(text);
    if (typeof creds.registrationId !== 'number' || creds.noiseKey === undefined) return undefined;
    return { text, ...(typeof openedAt === 'number' ? { openedAt } : {}) };
  } catch {
    return undefined;
  }
}

// Which stored credentials a start begins with, and when there is nothing to begin with. It never
// answers "none" where something is stored: that would silently be a new identity.

export type StartingPoint =
  | { readonly kind: 'none' }
  /** A pairing that was begun and never completed: the server would refuse it with 401. */
  | { readonly kind: 'half_made' }
  | { readonly kind: 'damaged' }
  | {
      readonly kind: 'stored';
      readonly generation: Generation;
      /** The newest generation, where it could not be read. */
      readonly recoveredFrom?: number;
    };

export async function chooseStart(
  state: KeyValueStore,
  { intact, damaged }: StoredGenerations,
): Promise<StartingPoint> {
  const [newest] = intact;
  const [newestDamaged] = damaged;
  if (newestDamaged !== undefined && newestDamaged.number >= (newest?.number ?? 0)) {
    return recover(intact, newestDamaged.number);
  }
  if (newest === undefined) return (await hasKeys(state)) ? { kind: 'damaged' } : { kind: 'none' };
  return isHalfMade(credsOf(newest))
    ? { kind: 'half_made' }
    : { kind: 'stored', generation: newest };
}

function recover(intact: readonly Generation[], recoveredFrom: number): StartingPoint {
  const linked = intact.filter((one) => isLinked(credsOf(one)));
  const generation = linked.find(({ openedAt }) => openedAt !== undefined) ?? linked[0];
  return generation === undefined
    ? { kind: 'damaged' }
    : { kind: 'stored', generation, recoveredFrom };
}

const isHalfMade = (creds: AuthenticationCreds) => creds.me !== undefined && !isLinked(creds);

/** Keys without credentials: these were there once. */
async function hasKeys(state: KeyValueStore): Promise<boolean> {
  const kinds = [keyRow('session', ''), PRE_KEY_PREFIX];
  const found = await Promise.all(kinds.map((prefix) => state.list(prefix, { limit: 1 })));
  return found.some((rows) => rows.length > 0);
}

// Whose account the credentials are linked to, and which addresses are its own.

export type LinkedAccount = {
  /** International number, digits. */
  readonly number: string;
  /** Digits, without a device. */
  readonly lid?: string;
  readonly name?: string;
};

/** What Baileys calls an account whose name it does not know. */
const NO_NAME = '~';

/** Pairing was completed: asking for a code alone sets `me` already. */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me?.id !== undefined && creds.account !== undefined;
}

export function linkedAccountOf(creds: AuthenticationCreds): LinkedAccount | undefined {
  const number = isLinked(creds) ? jidDecode(creds.me?.id)?.user : undefined;
  if (number === undefined) return undefined;
  const lid = jidDecode(creds.me?.lid)?.user;
  const name = creds.me?.name;
  return {
    number,
    ...(lid === undefined ? {} : { lid }),
    ...(name === undefined || name === NO_NAME ? {} : { name }),
  };
}

export function isOwnAddress(address: PersonJid, own: LinkedAccount | undefined): boolean {
  if (own === undefined) return false;
  return address.user === (address.kind === 'number' ? own.number : own.lid);
}

/** The account's ids as people's are spelled. */
export function ownIds(own: LinkedAccount | undefined): readonly string[] {
  if (own === undefined) return [];
  const { number, lid } = own;
  const byLid = lid === undefined ? [] : [idOfPerson({ kind: 'lid', user: lid })];
  return [idOfPerson({ kind: 'number', user: number }), ...byLid];
}

// What is left of earlier links: credentials and keys moved out of the way as a whole, the newest
// few kept, so that a person who linked again by mistake has not destroyed anything.

const OLD_PREFIX = 'old/';
const LINKS_KEPT = 3;
const TIME_DIGITS = 15;
/** Sorts behind every key of one old link. */
const BEHIND = '\u{10ffff}';

/** The rows that take the stored link away; it is kept under the time given, epoch milliseconds. */
export async function setLinkAside(
  state: KeyValueStore,
  now: number,
): Promise<readonly KeyValueChange[]> {
  const stored = await linkRows(state);
  if (stored.length === 0) return [];
  const folder = `${OLD_PREFIX}${String(now).padStart(TIME_DIGITS, '0')}/`;
  return [
    ...stored.flatMap(({ key, value }) => [
      { key: folder + key, value },
      { key, value: undefined },
    ]),
    ...(await surplus(state, folder)),
  ];
}

/** The rows that take away what never was a link. */
export async function dropLink(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return (await linkRows(state)).map(({ key }) => ({ key, value: undefined }));
}

async function linkRows(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return [...(await state.list(CREDS_PREFIX)), ...(await state.list(KEY_PREFIX))];
}

/** Deletes the links older than those kept, `newest` counted among them. */
async function surplus(state: KeyValueStore, newest: string): Promise<readonly KeyValueChange[]> {
  const folders = new Set([newest]);
  for (let after = OLD_PREFIX; ; ) {
    const [next] = await state.list(OLD_PREFIX, { limit: 1, after });
    if (next === undefined) break;
    const folder = next.key.slice(0, next.key.indexOf('/', OLD_PREFIX.length) + 1);
    folders.add(folder);
    after = folder + BEHIND;
  }
  const rows: KeyValueChange[] = [];
  for (const folder of [...folders].sort().slice(0, -LINKS_KEPT)) {
    for (const { key } of await state.list(folder)) rows.push({ key, value: undefined });
  }
  return rows;
}

// A pre-key that is on disk before anybody asks for one. Baileys puts a new pre-key into a retry
// receipt and commits it only after the receipt went out; with a spare one it hands out what is
// stored already, and a process that dies in between has lost nothing.

export type Spare = {
  readonly row: KeyValueChange;
  /** It could not be stored: Baileys must not take it for there. */
  discard(): void;
};

/** A spare pre-key where there is none; counted in the credentials from now on. */
export function makeSpare(creds: AuthenticationCreds): Spare | undefined {
  if (creds.nextPreKeyId > creds.firstUnuploadedPreKeyId) return undefined;
  const id = creds.nextPreKeyId;
  creds.nextPreKeyId = id + 1;
  const value = encodeKey('pre-key', String(id), Curve.generateKeyPair());
  return {
    row: { key: keyRow('pre-key', String(id)), value },
    discard() {
      if (creds.nextPreKeyId === id + 1) creds.nextPreKeyId = id;
    },
  };
}

/**
 * Moves the counters behind every id that may be in use: older credentials count fewer, and a spare
 * of the last process may have been handed out as it died. It stays readable and is not offered again.
 * Returns the row of a new spare.
 */
export async function skipUsedIds(
  state: KeyValueStore,
  creds: AuthenticationCreds,
): Promise<readonly KeyValueChange[]> {
  const [newest] = await state.list(PRE_KEY_PREFIX, { limit: 1, newestFirst: true });
  const behind = newest === undefined ? 1 : preKeyIdOf(newest.key) + 1;
  creds.nextPreKeyId = Math.max(creds.nextPreKeyId, behind);
  creds.firstUnuploadedPreKeyId = creds.nextPreKeyId;
  // Before the first upload there is none: that one makes its own.
  const spare = creds.nextPreKeyId === 1 ? undefined : makeSpare(creds);
  return spare === undefined ? [] : [spare.row];
}

/** The counters move with every start; they make no other credentials. */
export function isSameButForCounters(
  one: AuthenticationCreds,
  other: AuthenticationCreds,
): boolean {
  const counters = { nextPreKeyId: 0, firstUnuploadedPreKeyId: 0 };
  return textOf({ ...one, ...counters }) === textOf({ ...other, ...counters });
}
