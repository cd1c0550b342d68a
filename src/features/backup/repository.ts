// A repository of back-ups: chunks of content named by their hash, each stored once and compressed,
// and a snapshot for each back-up that names its chunks. A snapshot is written last, so that one
// that is there is complete. An encrypted repository has a key pair of its own: who writes needs
// its public half only, the other half is encrypted to people. All encrypted files are age files.

import { createHmac, hash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { z } from 'zod';
import { isAlive } from '../../kernel/home-state.ts';
import { RecentMap } from '../../lib/async.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { type Place, placeError } from './places.ts';

const FORMAT = 1;
export const CHUNK_BYTES = 2 * 1024 * 1024;
const HEAD = 'nanobot-backup.json';
/** The private half of the key pair, encrypted to people. */
const identityKey = ({ id }: { readonly id: string }) => `identity-${id}.age`;
const CHUNKS = 'chunks';
const SNAPSHOTS = 'snapshots';
const LOCKS = 'locks';
/** Most chunks in memory while a back-up is read; one file in several consecutive ones. */
const CACHED_CHUNKS = 8;

const headShape = z.object({
  format: z.literal(FORMAT),
  id: z.string().min(1),
  /** Absent: not encrypted. */
  recipient: z.string().optional(),
});

const snapshotShape = z.object({
  format: z.literal(FORMAT),
  id: z.string().regex(/^[\w-]+$/),
  at: z.iso.datetime(),
  /** The id of the home. */
  home: z.string(),
  program: z.string(),
  files: z.number(),
  bytes: z.number(),
  /** The chunks of the list of its files. */
  list: z.array(z.string()),
  /** All its chunks, including those. */
  chunks: z.array(z.string()),
});

export type Snapshot = Readonly<z.infer<typeof snapshotShape>>;

/** Who can read an encrypted repository. */
export type Encryption =
  | { readonly kind: 'recipients'; readonly recipients: readonly string[] }
  | { readonly kind: 'passphrase'; readonly passphrase: string };

/** What opens an encrypted repository: asked for only if it is encrypted, by what it is closed with. */
export type Unlock = (
  kind: 'identity' | 'passphrase',
) => Promise<
  | { readonly kind: 'identity'; readonly identity: string }
  | { readonly kind: 'passphrase'; readonly passphrase: string }
>;

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

type RepositoryHead = Readonly<z.infer<typeof headShape>>;

async function readHead(place: Place): Promise<RepositoryHead | undefined> {
  const content = await place.read(HEAD);
  if (content === undefined) return undefined;
  const parsed = headShape.safeParse(parseJson(Buffer.from(content).toString()));
  if (parsed.success) return parsed.data;
  throw placeError(
    'backup_damaged',
    t`${place.name} has back-ups of another version, or ${HEAD} there is damaged`,
  );
}

export const hasRepository = async (place: Place) => (await readHead(place)) !== undefined;

/** The repository in the place, created if there is none. @throws NanobotError */
export async function openHead(
  place: Place,
  encryption: Encryption | undefined,
): Promise<RepositoryHead> {
  const known = await readHead(place);
  if (known !== undefined) {
    if (encryption === undefined || known.recipient !== undefined) return known;
    throw placeError(
      'backup_place',
      t`the back-ups in ${place.name} are not encrypted. Choose another place for encrypted ones.`,
    );
  }
  const id = randomBytes(8).toString('hex');
  const head: RepositoryHead = { format: FORMAT, id };
  if (encryption === undefined) return written(place, head);
  const { Encrypter, generateX25519Identity, identityToRecipient } = await import('age-encryption');
  const identity = await generateX25519Identity();
  const recipient = await identityToRecipient(identity);
  const encrypter = new Encrypter();
  if (encryption.kind === 'passphrase') encrypter.setPassphrase(encryption.passphrase);
  else for (const each of encryption.recipients) addRecipient(encrypter, each);
  await place.write(identityKey(head), await encrypter.encrypt(`${identity}\n`));
  return written(place, { ...head, recipient });
}

function addRecipient(encrypter: { addRecipient(one: string): void }, recipient: string): void {
  try {
    encrypter.addRecipient(recipient);
  } catch (error) {
    throw placeError('backup_key', t`"${recipient}" is no recipient of age: age1...`, error);
  }
}

async function written(place: Place, head: RepositoryHead): Promise<RepositoryHead> {
  await place.write(HEAD, Buffer.from(`${JSON.stringify(head)}\n`));
  return head;
}

/** Content in the form in which it is stored. */
async function sealOf(head: RepositoryHead, nameKey: string) {
  if (head.recipient === undefined) {
    return { seal: compress, nameOf: (content: Uint8Array) => hash('sha256', content) };
  }
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  encrypter.addRecipient(head.recipient);
  return {
    seal: async (content: Uint8Array) => encrypter.encrypt(await compress(content)),
    nameOf: (content: Uint8Array) => createHmac('sha256', nameKey).update(content).digest('hex'),
  };
}

const chunkKey = (name: string) => `${CHUNKS}/${name.slice(0, 2)}/${name}`;
const snapshotKey = (id: string) => `${SNAPSHOTS}/${id}.json`;

/** Adds one snapshot. */
export interface Writer {
  readonly known: ReadonlySet<string>;
  /** Stores the content unless it is there already; returns its name. */
  put(content: Uint8Array): Promise<string>;
  /** Bytes that were stored, as they were stored. */
  readonly storedBytes: number;
  publish(snapshot: Omit<Snapshot, 'format' | 'chunks'>, used: Iterable<string>): Promise<void>;
}

/** @param nameKey of the names of chunks in an encrypted repository */
export async function openWriter(
  place: Place,
  head: RepositoryHead,
  nameKey: string,
): Promise<Writer> {
  const { seal, nameOf } = await sealOf(head, nameKey);
  const known = new Set<string>();
  for await (const { key } of place.list(CHUNKS)) {
    const name = key.slice(key.lastIndexOf('/') + 1);
    // The rest of a write that was killed begins with a dot.
    if (!name.startsWith('.')) known.add(name);
  }
  let storedBytes = 0;
  return {
    known,
    get storedBytes() {
      return storedBytes;
    },
    async put(content) {
      const name = nameOf(content);
      if (known.has(name)) return name;
      const sealed = await seal(content);
      await place.write(chunkKey(name), sealed);
      known.add(name);
      storedBytes += sealed.length;
      return name;
    },
    async publish(facts, used) {
      const now = place.isStream ? head : await readHead(place);
      if (now?.id !== head.id) {
        throw placeError(
          'backup_place',
          t`another first back-up began in ${place.name} at the same time. Repeat this one.`,
        );
      }
      const snapshot: Snapshot = { format: FORMAT, ...facts, chunks: [...new Set(used)].sort() };
      await place.write(snapshotKey(facts.id), Buffer.from(`${JSON.stringify(snapshot)}\n`));
      await place.finish();
    },
  };
}

/** Oldest first. */
export async function snapshots(place: Place): Promise<readonly Snapshot[]> {
  const found: Snapshot[] = [];
  for await (const { key } of place.list(SNAPSHOTS)) {
    if (!key.endsWith('.json')) continue;
    const content = await place.read(key);
    const parsed = content && snapshotShape.safeParse(parseJson(Buffer.from(content).toString()));
    if (parsed?.success) found.push(parsed.data);
  }
  return found.sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Reads chunks. */
export type Reader = { chunk(name: string): Promise<Uint8Array> };

export async function openReader(place: Place, unlock: Unlock): Promise<Reader> {
  const head = await readHead(place);
  if (head === undefined) {
    throw placeError('backup_place', t`there are no back-ups in ${place.name}`);
  }
  const unseal = head.recipient === undefined ? undefined : await unsealer(place, head, unlock);
  const recent = new RecentMap<string, Promise<Uint8Array>>(CACHED_CHUNKS);
  async function read(name: string): Promise<Uint8Array> {
    const sealed = await place.read(chunkKey(name));
    if (sealed === undefined) throw damaged(place, t`chunk ${name} is missing`);
    try {
      return await decompress(unseal === undefined ? sealed : await unseal(sealed));
    } catch (error) {
      throw damaged(place, t`chunk ${name} is not as it was written`, error);
    }
  }
  return {
    chunk(name) {
      const known = recent.get(name);
      if (known !== undefined) return known;
      const reading = read(name);
      reading.catch(() => recent.delete(name));
      recent.set(name, reading);
      return reading;
    },
  };
}

export const damaged = (place: Pick<Place, 'name'>, what: string, cause?: unknown) =>
  placeError(
    'backup_damaged',
    t`the back-up in ${place.name} is damaged: ${what}. Choose another one: nanobot backup list`,
    cause,
  );

/** A passphrase is alone, and stands first. */
const AGE_HEAD_BYTES = 200;

async function unsealer(place: Place, repository: RepositoryHead, unlock: Unlock) {
  const sealed = await place.read(identityKey(repository));
  if (sealed === undefined) throw damaged(place, t`${identityKey(repository)} is missing`);
  const { Decrypter } = await import('age-encryption');
  const head = Buffer.from(sealed.subarray(0, AGE_HEAD_BYTES)).toString('latin1');
  const key = await unlock(head.includes('\n-> scrypt ') ? 'passphrase' : 'identity');
  const opener = new Decrypter();
  try {
    if (key.kind === 'passphrase') opener.addPassphrase(key.passphrase);
    else opener.addIdentity(key.identity);
    const identity = (await opener.decrypt(sealed, 'text')).trim();
    const decrypter = new Decrypter();
    decrypter.addIdentity(identity);
    return (content: Uint8Array) => decrypter.decrypt(content);
  } catch (error) {
    throw placeError(
      'backup_key',
      key.kind === 'passphrase'
        ? t`the passphrase does not open the back-ups in ${place.name}`
        : t`this identity does not open the back-ups in ${place.name}`,
      error,
    );
  }
}

// Locks: several back-ups may be written at once, but nothing is deleted meanwhile. Each writes its
// own lock first and looks for others then, so that of two at least one sees the other.

type LockKind = 'create' | 'prune';

const LOCK_WAIT_MS = 1000;
const LOCK_REFRESH_MS = 60_000;
/** Its process cannot be asked, and has not renewed it for so long: it is gone. */
const LOCK_STALE_MS = 10 * 60_000;

const lockShape = z.object({
  kind: z.enum(['create', 'prune']),
  host: z.string(),
  pid: z.number(),
});

export async function lockRepository(
  place: Place,
  kind: LockKind,
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  const key = `${LOCKS}/${randomBytes(8).toString('hex')}.json`;
  const text = JSON.stringify({ kind, host: hostname(), pid: process.pid });
  const write = () => place.write(key, Buffer.from(text));
  await write();
  const refresh = setInterval(() => void write().catch(() => undefined), LOCK_REFRESH_MS);
  refresh.unref();
  const release = async () => {
    clearInterval(refresh);
    await place.remove(key);
  };
  try {
    while (await isLocked(place, key, kind === 'create' ? ['prune'] : ['create', 'prune'])) {
      if (kind === 'prune') {
        await release();
        return undefined;
      }
      signal.throwIfAborted();
      await new Promise((done) => setTimeout(done, LOCK_WAIT_MS));
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { [Symbol.asyncDispose]: release };
}

async function isLocked(place: Place, own: string, by: readonly LockKind[]): Promise<boolean> {
  const now = await place.now();
  for await (const { key, at } of place.list(LOCKS)) {
    if (key === own || !key.endsWith('.json')) continue;
    const content = await place.read(key);
    const lock = lockShape.safeParse(parseJson(Buffer.from(content ?? []).toString())).data;
    if (lock === undefined) continue;
    if (now - at > LOCK_STALE_MS || isGone(lock)) await place.remove(key);
    else if (by.includes(lock.kind)) return true;
  }
  return false;
}

const isGone = ({ host, pid }: z.infer<typeof lockShape>) => host === hostname() && !isAlive(pid);

// Which back-ups stay.

/** How many of the last days, weeks and months keep their newest back-up. */
export type Keep = { readonly days: number; readonly weeks: number; readonly months: number };

const DAY_MS = 86_400_000;
const DAYS_OF_WEEK = 7;
/** 1970-01-01 was a Thursday; weeks begin on Monday. */
const MONDAY_SHIFT = 3;

/** The ids that stay: the newest one always does. */
export function keptIds(all: readonly Snapshot[], keep: Keep): ReadonlySet<string> {
  const newestFirst = [...all].sort((one, other) => (one.id < other.id ? 1 : -1));
  const day = ({ at }: Snapshot) => Math.floor(Date.parse(at) / DAY_MS);
  const periods: readonly (readonly [number, (one: Snapshot) => number | string])[] = [
    [1, ({ id }) => id],
    [keep.days, day],
    [keep.weeks, (one) => Math.floor((day(one) + MONDAY_SHIFT) / DAYS_OF_WEEK)],
    [keep.months, ({ at }) => at.slice(0, 'yyyy-mm'.length)],
  ];
  const kept = new Set<string>();
  for (const [limit, periodOf] of periods) {
    const seen = new Set<number | string>();
    for (const one of newestFirst) {
      const period = periodOf(one);
      if (seen.has(period) || seen.size === limit) continue;
      seen.add(period);
      kept.add(one.id);
    }
  }
  return kept;
}

type Pruned = { readonly snapshots: number; readonly chunks: number };

/**
 * Deletes the snapshots of this home that do not stay, and the chunks that none needs. Undefined if
 * another back-up is being written: the next one does it.
 */
export async function prune(
  place: Place,
  home: string,
  keep: Keep,
  signal: AbortSignal,
): Promise<Pruned | undefined> {
  await using lock = await lockRepository(place, 'prune', signal);
  if (lock === undefined) return undefined;
  const all = await snapshots(place);
  const kept = keptIds(
    all.filter((one) => one.home === home),
    keep,
  );
  const gone = all.filter((one) => one.home === home && !kept.has(one.id));
  for (const { id } of gone) await place.remove(snapshotKey(id));
  // Read again: a snapshot that cannot be read now must not lose its chunks.
  const needed = new Set<string>();
  for await (const { key } of place.list(SNAPSHOTS)) {
    const content = await place.read(key);
    const parsed = snapshotShape.safeParse(parseJson(Buffer.from(content ?? []).toString()));
    if (!parsed.success) return { snapshots: gone.length, chunks: 0 };
    for (const name of parsed.data.chunks) needed.add(name);
  }
  let chunks = 0;
  for await (const { key } of place.list(CHUNKS)) {
    signal.throwIfAborted();
    if (needed.has(key.slice(key.lastIndexOf('/') + 1))) continue;
    await place.remove(key);
    chunks += 1;
  }
  return { snapshots: gone.length, chunks };
}
