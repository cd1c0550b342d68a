// The store of a home opened for one command: beside a running gateway or without one. Everything
// done here is one transaction that the gateway notices by itself.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { z } from 'zod';
import { systemCode, textIfThere, writeAtomic } from '../lib/files/files.ts';
import { parseJson } from '../lib/json/json.ts';
import { type Logger, silentLogger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { InboundEntry } from './bus/bus.ts';
import { damagedStore, damageMark, newestSnapshot } from './bus/store/database.ts';
import { type EmbeddedStoreOptions, openEmbeddedStore } from './bus/store/embedded.ts';
import { holdHome } from './bus/store/home-lock.ts';
import type { NodeSelf } from './bus/store/shared.ts';
import {
  type EmbeddedStore,
  type EntryRow,
  HomeLockedError,
  StoreError,
} from './bus/store/store.ts';
import type { TextIndex } from './bus/store/text-index.ts';
import type { Config } from './config/config.ts';
import { expandEnvironment, withVariables } from './config/environment.ts';
import { type Home, isShared } from './config/files/home.ts';
import { findSecrets } from './config/files/secret-sources.ts';
import { isJsonObject, type JsonObject, readJson } from './config/json.ts';
import { valueAt } from './config/json-paths.ts';
import { missingSecrets, withSecrets } from './config/secrets.ts';
import { databaseProblems } from './config/settings-fields.ts';
import { ConfigError } from './message/errors.ts';
import type { InboundMessage } from './message/message.ts';
import type { Pairing } from './people/pairing.ts';
import type { People } from './people/people.ts';
import type { OpenRows } from './rows.ts';
import type { Unwritten } from './sessions/journal.ts';

/** The scope of pairings in the store. */
export const PAIRING_SCOPE = 'people';

export interface OpenedState extends AsyncDisposable {
  readonly store: EmbeddedStore;
  readonly rows: OpenRows;
  readonly pairing: Pairing;
  readonly people: People;
}

/** Held messages of an unknown sender are bounded where they are held. */
const NO_LIMITS = {
  maxPending: Number.POSITIVE_INFINITY,
  maxPendingPerChat: Number.POSITIVE_INFINITY,
};

const NO_CONFIGURATION = { allowFrom: [], owners: [], strangers: 'closed' } as const;

const queued = (message: InboundMessage): InboundEntry => ({ kind: 'queue', message });

/** Whether there may be something in the store; on a server that is known only by asking it. */
export async function hasState(home: Home): Promise<boolean> {
  return existsSync(home.state) || (await storeSetting(home)).engine === 'postgres';
}

type StoreSetting = Pick<Config['store'], 'engine' | 'url'> &
  Partial<Pick<Config['store'], 'poolUrl'>>;

const ON_FILE: StoreSetting = { engine: 'sqlite', url: '' };

/**
 * Where the configuration puts the store, read by itself: commands about people and messages work
 * beside a configuration that is invalid elsewhere, and ask for no other secret. @throws ConfigError
 */
export async function storeSetting(home: Home, env = process.env): Promise<StoreSetting> {
  const raw = (await jsonIn(home.config)) ?? (await jsonIn(home.lastGoodConfig)) ?? {};
  return storeSettingIn(raw, home, env);
}

/** Of a configuration as it is written. @throws ConfigError */
export async function storeSettingIn(
  raw: JsonObject,
  home: Home,
  env: NodeJS.ProcessEnv,
): Promise<StoreSetting> {
  const store = withVariables(raw, env)['store'];
  if (store === undefined || valueAt(store, 'engine') !== 'postgres') return ON_FILE;
  const part = { store };
  const found = await findSecrets(part, env, home);
  const missing = missingSecrets(part, found);
  const url = valueAt(withSecrets(part, found), 'store.url') ?? '';
  const whole = typeof url === 'string' ? String(expandEnvironment(url, env).value) : '';
  const setting: StoreSetting = { engine: 'postgres', url: whole };
  const problems = missing.length > 0 ? missing : databaseProblems(setting);
  if (problems.length > 0) throw new ConfigError(t`the database is not configured`, problems);
  return setting;
}

/** Undefined where there is no such file, or no JSON in it. */
async function jsonIn(path: string): Promise<JsonObject | undefined> {
  const text = await textIfThere(path);
  try {
    const value = text === undefined ? undefined : readJson(text).value;
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

/**
 * Opens the store, created if it does not exist, for the duration of the work. @throws StoreError
 */
export async function withOpenState<Result>(
  home: Home,
  clock: Clock,
  work: (state: OpenedState) => Promise<Result>,
): Promise<Result> {
  await using state = await openState(home, clock);
  return await work(state);
}

type StoreOptions = Omit<EmbeddedStoreOptions, 'path'> & {
  /** As the process has loaded it; absent: read from the configuration of the home. */
  readonly setting?: StoreSetting;
  /** One of several processes of the gateway. */
  readonly node?: NodeSelf;
};

/**
 * The store of a home, created if it does not exist. An empty file beside existing conversations is
 * an error: treating it as new would lose who is let in and what waits.
 * @throws StoreError, ConfigError
 */
export async function openStore(home: Home, options: StoreOptions): Promise<EmbeddedStore> {
  const setting = options.setting ?? (await storeSetting(home));
  const { engine } = setting;
  return engine === 'postgres' ? openServer(home, setting, options) : openFile(home, options);
}

/** What is in state.db would be missing without a word. @throws StoreError */
async function openServer(
  home: Home,
  { url, poolUrl = '' }: StoreSetting,
  { clock, log, inBackground, node }: StoreOptions,
): Promise<EmbeddedStore> {
  if (existsSync(home.state)) {
    throw new StoreError(
      'store_forbidden',
      t`store.engine is postgres, and ${home.state} holds data that is not in the database. ` +
        t`Set store.engine to sqlite and run "nanobot store migrate --to postgres"; after an interrupted ` +
        t`migration run it again as it was. To begin anew, move ${basename(home.state)}* out of the home.`,
    );
  }
  const { openPostgresStore } = await import('./bus/store/postgres/store.ts');
  const shared = node === undefined ? {} : { node };
  return openPostgresStore({
    poolUrl: poolUrl === '' ? undefined : poolUrl,
    ...{ url, clock, log, isGateway: inBackground === true, isShared: isShared(home) },
    ...shared,
  });
}

async function openFile(home: Home, options: StoreOptions): Promise<EmbeddedStore> {
  const { size } = (await stat(home.state).catch(() => undefined)) ?? {};
  const sessions = size === 0 ? await readdir(home.sessions).catch(() => []) : [];
  const wasUsed = sessions.length > 0 || existsSync(newestSnapshot(home.state));
  if (size === 0 && wasUsed) throw damagedStore(home.state, t`is empty`);
  return openEmbeddedStore({ ...options, path: home.state });
}

/** About a second; `doctor` and the first snapshot check larger stores. */
const CHECK_UP_TO_BYTES = 100_000_000;

/**
 * The store for a gateway that holds the home. A damaged one is rebuilt (docs/adr/0036), unless the
 * configuration says otherwise. @throws StoreError
 */
export async function openGatewayStore(
  home: Home,
  { clock, log, node }: Pick<StoreOptions, 'clock' | 'log' | 'node'>,
  setting: StoreSetting & Pick<Config['store'], 'onDamage'>,
): Promise<EmbeddedStore> {
  const { state } = home;
  if (setting.engine === 'postgres') {
    const shared = node === undefined ? {} : { node };
    return openStore(home, { clock, log, inBackground: true, setting, ...shared });
  }
  const names = await readdir(home.root).catch((): string[] => []);
  if (names.some((name) => name.startsWith(`${basename(state)}.recovered-`))) {
    await (await import('./recovery.ts')).finishRecovery(state);
  }
  const isMarked = existsSync(damageMark(state));
  const checkUpToBytes = isMarked ? Number.POSITIVE_INFINITY : CHECK_UP_TO_BYTES;
  const options = { clock, log, checkUpToBytes, inBackground: true, setting };
  try {
    await refuseOlder(home);
    const store = await openStore(home, options);
    if (isMarked) await rm(damageMark(state), { force: true });
    return store;
  } catch (error) {
    const isDamaged = error instanceof StoreError && error.code === 'store_damaged';
    if (!isDamaged || setting.onDamage === 'stop') throw error;
    const { recoverStore } = await import('./recovery.ts');
    await recoverStore({ home, clock, log }, error.damage);
    return openStore(home, options);
  }
}

/** After a gateway that was killed: the log of the store may be lost. @throws StoreError */
export async function refuseOlder(home: Home): Promise<void> {
  if (!existsSync(home.runtime)) return;
  const { isBehind } = await import('./recovery.ts');
  if (await isBehind(home)) throw damagedStore(home.state, t`is older than the conversations`);
}

/** The full-text index of a home: beside its store in a database, or in a file. */
export async function openTextIndex(
  home: Home,
  store: Pick<EmbeddedStore, 'textIndex'>,
  log: Logger,
): Promise<TextIndex> {
  if (store.textIndex === undefined) {
    return (await import('./bus/store/file-index.ts')).createFileIndex({ path: home.index, log });
  }
  // One that was used before holds texts that nothing would erase any more.
  for (const end of ['', '-wal', '-shm']) await rm(home.index + end, { force: true });
  return store.textIndex;
}

/** For a command. @throws StoreError, ConfigError */
export async function withTextIndex(
  home: Home,
  clock: Clock,
  work: (index: TextIndex) => Promise<void>,
): Promise<void> {
  const opened = new AsyncDisposableStack();
  try {
    const isInStore = (await storeSetting(home)).engine === 'postgres';
    const options = { clock, log: silentLogger };
    const store = isInStore ? opened.use(await openStore(home, options)) : {};
    await work(opened.use(await openTextIndex(home, store, silentLogger)));
  } finally {
    await opened.disposeAsync();
  }
}

/** A running gateway moves its entries twice a second. */
const MOVE_WAIT_MS = 10_000;
const LOOK_AGAIN_MS = 100;

/**
 * Moves conversation entries from the store into their files; waits for a running gateway to do it,
 * but not for a file that cannot be written. Returns what stays in the store. @throws StoreError
 */
export async function completeSessions(home: Home, clock: Clock): Promise<Unwritten> {
  if (!(await hasState(home))) return new Map();
  await using store = await openStore(home, { clock, log: silentLogger });
  const all = { after: 0, limit: Number.MAX_SAFE_INTEGER };
  const placeOf = ({ file, place }: EntryRow) => `${file} ${place}`;
  const until = clock.monotonic() + MOVE_WAIT_MS;
  if (store.sharedEntries !== undefined) {
    const { completeSessionFiles } = await import('./sessions/journal.ts');
    return await completeSessionFiles({ folder: home.sessions, store, clock, log: silentLogger });
  }
  const wanted = new Set((await store.entries(all)).map(placeOf));
  for (;;) {
    const left = (await store.entries(all)).filter((row) => wanted.has(placeOf(row)));
    if (left.length === 0) return new Map();
    const { completeSessionFiles, unwritableOf } = await import('./sessions/journal.ts');
    const held = await holdHome(home.lock, { pid: process.pid }).catch((error) => {
      if (!(error instanceof HomeLockedError)) throw error;
      return error;
    });
    if (!(held instanceof HomeLockedError)) {
      const deps = { folder: home.sessions, store, clock, log: silentLogger };
      return await completeSessionFiles(deps).finally(() => held[Symbol.asyncDispose]());
    }
    const unwritable = unwritableOf(home.sessions, left);
    if (left.every(({ session }) => unwritable.has(session))) return unwritable;
    if (clock.monotonic() > until) {
      return new Map([...left.map(({ session }) => [session, held] as const), ...unwritable]);
    }
    await clock.sleep(LOOK_AGAIN_MS);
  }
}

/** Creates the store if it does not exist. @throws StoreError */
export async function openState(
  home: Home,
  clock: Clock,
  { checkUpToBytes = 0 }: Pick<EmbeddedStoreOptions, 'checkUpToBytes'> = {},
): Promise<OpenedState> {
  const { createPeople } = await import('./people/people.ts');
  const { LOCAL_CHANNELS } = await import('../channels/local-channel.ts');
  const store = await openStore(home, { clock, log: silentLogger, checkUpToBytes });
  const { createRows } = await import('./rows.ts');
  const rows = createRows(store);
  const { openQuestionRows, settle } = await import('./questions/question-rows.ts');
  const people = createPeople({
    // A command about approvals opens the questions too.
    settled: (id, words) => settle(openQuestionRows(createRows(store)), id, words),
    rows,
    state: store.scope(PAIRING_SCOPE),
    localChannels: LOCAL_CHANNELS,
    // Only the running gateway knows the configured part.
    policy: () => NO_CONFIGURATION,
    clock,
    randomBytes,
    async release(messages) {
      await store.accept(messages.map(queued), { cursor: undefined, limits: NO_LIMITS });
    },
  });
  return {
    store,
    rows,
    pairing: people.pairing,
    people,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

// The gateway that runs in a home, as other processes find it: its own data, trusted only while
// that very process lives, and only in that very home.

const PROBE_TIMEOUT_MS = 3000;

const runtimeSchema = z.object({
  pid: z.int().positive(),
  address: z.string().optional(),
  host: z.string().optional(),
  startedAt: z.number(),
  /**
   * Identifies the process besides its number, which another may have after a restart or in another
   * container.
   */
  born: z.string().optional(),
  /** A copy of a home is another home. */
  root: z.string().optional(),
});

export type RunningGateway = {
  readonly pid: number;
  /** Base URL of its HTTP server; undefined if it runs without one. */
  readonly address: string | undefined;
  /** The address it listens on; undefined if it is not recorded. */
  readonly host?: string | undefined;
  /** Epoch milliseconds. */
  readonly startedAt: number;
};

/**
 * Publishes the gateway's address to the processes of this home. Resolves with a disposable that
 * withdraws it.
 */
export async function announceGateway(
  home: Home,
  { address, host, startedAt }: Omit<RunningGateway, 'pid'>,
): Promise<() => Promise<void>> {
  const { pid } = process;
  const born = await birthOf(pid);
  const self = { pid, address, host, startedAt, born, root: await realpath(home.root) };
  await writeAtomic(home.runtime, JSON.stringify(self));
  return () => rm(home.runtime, { force: true });
}

export async function findRunningGateway(home: Home): Promise<RunningGateway | undefined> {
  const text = await readFile(home.runtime, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const parsed = runtimeSchema.safeParse(parseJson(text));
  if (!parsed.success || !isAlive(parsed.data.pid)) return undefined;
  const { pid, address, host, startedAt, born, root } = parsed.data;
  if (root !== undefined && root !== (await realpath(home.root))) return undefined;
  if (born !== undefined && born !== ((await birthOf(pid)) ?? born)) return undefined;
  return { pid, address, host, startedAt };
}

/** The headers of a request to the gateway; empty without a token. */
export function authorization(token: string): Readonly<Record<string, string>> {
  return token === '' ? {} : { authorization: `Bearer ${token}` };
}

/** The gateway's response on a path; undefined if it does not answer in time. */
export async function askGateway(
  gateway: RunningGateway,
  path: string,
  token: string,
): Promise<unknown | undefined> {
  if (gateway.address === undefined) return undefined;
  try {
    const response = await fetch(new URL(path, gateway.address), {
      headers: authorization(token),
      redirect: 'error',
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    return parseJson(await response.text());
  } catch {
    return undefined;
  }
}

/**
 * Sends JSON to a path of the gateway. @throws the error of the connection, or the signal's reason
 */
export function tellGateway(
  { address, token }: { readonly address: string; readonly token: string },
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(new URL(path, address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization(token) },
    body: JSON.stringify(body),
    redirect: 'error',
    signal,
  });
}

/**
 * Start time of the process, from the kernel; undefined if it is not available. proc(5), field 22
 */
export async function birthOf(pid: number): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return ticks === undefined ? undefined : `${boot.trim()} ${ticks}`;
  } catch {
    return undefined;
  }
}

/** Of this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === 'EPERM';
  }
}
