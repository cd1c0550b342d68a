// The account's credentials, one row per generation: every change writes a new row, so that a
// damaged or bad newest one still has predecessors. Earlier links are kept aside, the newest few;
// one spare pre-key is on disk before it is requested. The vault decides when.

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
import { KEY_PREFIX, keyRow, PRE_KEY_PREFIX, preKeyIdOf, rowOfKey } from './signal-keys.ts';

const CREDS_PREFIX = 'creds/';
const DAMAGED_PREFIX = 'creds-damaged/';
const NUMBER_DIGITS = 12;
/** Newest generations kept, beside the newest that opened a connection. */
const GENERATIONS_KEPT = 3;

type Generation = {
  readonly number: number;
  readonly text: string;
  /** When it opened a connection, epoch milliseconds. */
  readonly openedAt?: number | undefined;
};

export function credsOf(generation: Generation): AuthenticationCreds {
  return JSON.parse(generation.text, BufferJSON.reviver);
}

export function textOf(creds: AuthenticationCreds): string {
  return JSON.stringify(creds, BufferJSON.replacer);
}

/** `textOf`, made anew only when a value was replaced: the library changes none in place. */
export function createTextOf(): typeof textOf {
  let values: readonly unknown[] = [];
  let text = '';
  return (creds) => {
    const now = Object.entries(creds).flat();
    if (now.length !== values.length || now.some((value, index) => value !== values[index])) {
      values = now;
      text = textOf(creds);
    }
    return text;
  };
}

/** The credentials in use, and what is stored of them. */
export type Identity = {
  readonly creds: AuthenticationCreds;
  /** Stored, newest first. */
  readonly kept: readonly Generation[];
  /** The highest number ever stored; 0 before the first. */
  readonly number: number;
  /** Content that needs no further row. */
  readonly text: string;
  /** The newest generation, if it could not be read. */
  readonly recoveredFrom?: number;
};

/** Not stored until something changes. */
export function freshIdentity(): Identity {
  const creds = initAuthCreds();
  return { creds, kept: [], number: 0, text: textOf(creds) };
}

export const lastOpened = ({ kept }: Identity): Generation | undefined =>
  kept.find(({ openedAt }) => openedAt !== undefined);

/** The identity with this generation as its newest, and the rows of that change. */
export function withGeneration(identity: Identity, generation: Generation) {
  const { number, text } = generation;
  const all = [generation, ...identity.kept.filter((one) => one.number !== number)];
  const opened = all.find(({ openedAt }) => openedAt !== undefined);
  const kept = all.filter((one, place) => place < GENERATIONS_KEPT || one === opened);
  const dropped = all.filter((one) => !kept.includes(one));
  return {
    identity: { ...identity, kept, number, text },
    rows: [
      rowOf(generation),
      ...dropped.map((one) => ({ key: keyOf(one.number), value: undefined })),
    ],
  };
}

const keyOf = (number: number) => CREDS_PREFIX + String(number).padStart(NUMBER_DIGITS, '0');

function rowOf({ number, text, openedAt }: Generation): KeyValueChange {
  const key = keyOf(number);
  return { key, value: seal(key, `${JSON.stringify({ v: 1, openedAt })}\n${text}`) };
}

function parseRow(key: string, value: string): Generation | undefined {
  const sealed = unseal(key, value);
  if (sealed === undefined) return undefined;
  const end = sealed.indexOf('\n');
  try {
    const { openedAt } = JSON.parse(sealed.slice(0, end));
    const text = sealed.slice(end + 1);
    const creds = JSON.parse(text);
    if (typeof creds.registrationId !== 'number' || creds.noiseKey === undefined) return undefined;
    const opened = typeof openedAt === 'number' ? openedAt : undefined;
    return { number: numberOf(key), text, openedAt: opened };
  } catch {
    return undefined;
  }
}

const numberOf = (key: string) => Number.parseInt(key.slice(CREDS_PREFIX.length), 10) || 0;

/** The stored credentials with which a start begins. */
type StartingPoint =
  | { readonly kind: 'none' }
  /** An unfinished pairing: the server would refuse it with 401. */
  | { readonly kind: 'half_made' }
  /** Stored but unreadable: never "none", which would silently create a new identity. */
  | { readonly kind: 'damaged' }
  | {
      readonly kind: 'stored';
      readonly identity: Identity;
      /** Moves unreadable rows out of the way of later generations. */
      readonly setAside: readonly KeyValueChange[];
    };

export async function readStart(state: KeyValueStore): Promise<StartingPoint> {
  const stored = await state.list(CREDS_PREFIX, { newestFirst: true });
  const read = stored.map((row) => ({ row, generation: parseRow(row.key, row.value) }));
  const kept = read.flatMap(({ generation }) => generation ?? []);
  const damaged = read.filter(({ generation }) => generation === undefined);
  const [newest] = kept;
  const isNewestDamaged = damaged.length > 0 && damaged[0] === read[0];
  const number = numberOf(stored[0]?.key ?? '');
  const used = isNewestDamaged ? recoverable(kept) : newest;
  if (used === undefined) {
    return { kind: isNewestDamaged || (await hasKeys(state)) ? 'damaged' : 'none' };
  }
  const creds = credsOf(used);
  if (creds.me !== undefined && !isLinked(creds)) return { kind: 'half_made' };
  const recovered = isNewestDamaged ? { recoveredFrom: number } : {};
  return {
    kind: 'stored',
    identity: { creds, kept, number, text: newest?.text ?? '', ...recovered },
    setAside: damaged.flatMap(({ row: { key, value } }) => [
      { key: DAMAGED_PREFIX + key.slice(CREDS_PREFIX.length), value },
      { key, value: undefined },
    ]),
  };
}

function recoverable(kept: readonly Generation[]): Generation | undefined {
  const linked = kept.filter((one) => isLinked(credsOf(one)));
  return linked.find(({ openedAt }) => openedAt !== undefined) ?? linked[0];
}

/** Keys without credentials: credentials were lost. */
async function hasKeys(state: KeyValueStore): Promise<boolean> {
  const kinds = [keyRow('session', ''), PRE_KEY_PREFIX];
  const found = await Promise.all(kinds.map((prefix) => state.list(prefix, { limit: 1 })));
  return found.some((rows) => rows.length > 0);
}

/** The account that the credentials are linked to. */
export type LinkedAccount = {
  /** International number, digits. */
  readonly number: string;
  /** Digits, without a device. */
  readonly lid?: string | undefined;
  readonly name?: string | undefined;
};

/** Baileys' placeholder for an unknown account name. */
const NO_NAME = '~';

/** The pairing is complete: requesting a code alone sets `me` already. */
export function isLinked(creds: AuthenticationCreds): boolean {
  return creds.me?.id !== undefined && creds.account !== undefined;
}

export function linkedAccountOf(creds: AuthenticationCreds): LinkedAccount | undefined {
  const number = isLinked(creds) ? jidDecode(creds.me?.id)?.user : undefined;
  if (number === undefined) return undefined;
  const name = creds.me?.name;
  const lid = jidDecode(creds.me?.lid)?.user;
  return { number, lid, name: name === NO_NAME ? undefined : name };
}

export function isOwnAddress(address: PersonJid, own: LinkedAccount | undefined): boolean {
  if (own === undefined) return false;
  return address.user === (address.kind === 'number' ? own.number : own.lid);
}

/** The account's ids in the spelling of people's ids. */
export function ownIds(own: LinkedAccount | undefined): readonly string[] {
  if (own === undefined) return [];
  const { number, lid } = own;
  const byLid = lid === undefined ? [] : [idOfPerson({ kind: 'lid', user: lid })];
  return [idOfPerson({ kind: 'number', user: number }), ...byLid];
}

// Earlier links: credentials and keys moved aside as a whole, the newest few kept, so that linking
// again by mistake destroys nothing.

const OLD_PREFIX = 'old/';
const LINKS_KEPT = 3;
const TIME_DIGITS = 15;

/** The rows that move the stored link aside under the given time, epoch milliseconds. */
export async function setLinkAside(
  state: KeyValueStore,
  now: number,
): Promise<readonly KeyValueChange[]> {
  const stored = await linkRows(state);
  if (stored.length === 0) return [];
  const folder = `${OLD_PREFIX}${String(now).padStart(TIME_DIGITS, '0')}/`;
  const folderOf = (key: string) => key.slice(0, key.indexOf('/', OLD_PREFIX.length) + 1);
  const before = Map.groupBy(await state.list(OLD_PREFIX), ({ key }) => folderOf(key));
  const folders = new Set([...before.keys(), folder]);
  const surplus = [...folders].toSorted().slice(0, -LINKS_KEPT);
  return [
    ...stored.flatMap(({ key, value }) => [
      { key: folder + key, value },
      { key, value: undefined },
    ]),
    ...surplus
      .flatMap((old) => before.get(old) ?? [])
      .map(({ key }) => ({ key, value: undefined })),
  ];
}

/** The rows that delete an unfinished link. */
export async function dropLink(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return (await linkRows(state)).map(({ key }) => ({ key, value: undefined }));
}

async function linkRows(state: KeyValueStore): Promise<readonly KeyValueChange[]> {
  return [...(await state.list(CREDS_PREFIX)), ...(await state.list(KEY_PREFIX))];
}

// A pre-key that is on disk before anybody requests one. Baileys puts a new pre-key into a retry
// receipt and commits it only after the receipt was sent; with a spare it sends one that is stored
// already, and a process that dies in between loses nothing.

export type Spare = NonNullable<ReturnType<typeof makeSpare>>;

/** A spare pre-key if there is none; counted in the credentials from now on. */
export function makeSpare(creds: AuthenticationCreds) {
  if (creds.nextPreKeyId > creds.firstUnuploadedPreKeyId) return undefined;
  const id = creds.nextPreKeyId;
  creds.nextPreKeyId = id + 1;
  return {
    row: rowOfKey('pre-key', String(id), Curve.generateKeyPair()),
    /** It could not be stored: Baileys must not treat it as existing. */
    discard() {
      if (creds.nextPreKeyId === id + 1) creds.nextPreKeyId = id;
    },
  };
}

/**
 * Moves the counters past every id that may be in use: older credentials count fewer, and a spare
 * of the last process may have been sent as it died. It stays readable and is not offered again.
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
  // Before the first upload there is none: the upload creates its own.
  const spare = creds.nextPreKeyId === 1 ? undefined : makeSpare(creds);
  return spare === undefined ? [] : [spare.row];
}

/** The counters move with every start; that alone does not make different credentials. */
export function isSameButForCounters(
  one: AuthenticationCreds,
  other: AuthenticationCreds,
): boolean {
  const counters = { nextPreKeyId: 0, firstUnuploadedPreKeyId: 0 };
  return textOf({ ...one, ...counters }) === textOf({ ...other, ...counters });
}
