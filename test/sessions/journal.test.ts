// The session journal at each point where a process may die between the commit of entries and the deletion
// of their rows, and with files that are not what they were when the rows were committed.

import { appendFile, mkdir, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { holdHome } from '../../src/kernel/bus/store/home-lock.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { completeSessions } from '../../src/kernel/home-state.ts';
import { messageId, sessionKey } from '../../src/kernel/message/ids.ts';
import { sessionOf } from '../../src/kernel/message/message.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { readSession } from '../../src/kernel/sessions/catalog.ts';
import { stemOf } from '../../src/kernel/sessions/file-lines.ts';
import {
  chatsOfChannel,
  forgetInSessions,
  sessionsOfChats,
} from '../../src/kernel/sessions/forget.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { createSessionMaintenance } from '../../src/kernel/sessions/maintenance.ts';
import { encodeEntry, formatName } from '../../src/kernel/sessions/rules/file.ts';
import { type LogFields, silentLogger } from '../../src/lib/logger.ts';
import { type Clock, systemClock } from '../../src/lib/time/clock.ts';
import { message } from '../contract/bus-bench.ts';
import { turnEntries } from '../contract/session-store.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withUnreadable } from '../support/unreadable.ts';
import { createSessionFolder, openEntryRows, ROOMY } from './session-folder.ts';

const KEY = sessionKey('telegram:42');
const DURABLE = { durable: true };
const BEFORE = [...turnEntries('c#1', 'one'), ...turnEntries('c#2', 'two')];
const [FIRST, SECOND] = [turnEntries('c#3', 'three'), turnEntries('c#4', 'four')];
const NEW = [...FIRST, ...SECOND];

const linesOf = (entries: readonly TranscriptEntry[]) =>
  entries.map((entry) => `${encodeEntry(entry)}\n`).join('');
const isNew = (entry: TranscriptEntry) =>
  'turnId' in entry && (entry.turnId === 'c#3' || entry.turnId === 'c#4');

type Folder = Awaited<ReturnType<typeof createSessionFolder>>;

/** As a process that dies before it deletes rows sees the store. */
const undeleting = (store: EmbeddedStore): EmbeddedStore => ({
  ...store,
  dropEntries: () => Promise.reject(new Error('killed')),
});

const openOver = ({ folder, clock }: Folder, store: EmbeddedStore) =>
  createJsonlSessionStore({ folder, store, clock, log: silentLogger, policy: () => ROOMY });

/** Two turns in the file, two more in rows; the process that wrote them is gone. */
async function withRows() {
  const session = await createSessionFolder();
  const writer = session.open();
  await writer.append(KEY, BEFORE, DURABLE);
  await session.complete();
  await writer.append(KEY, FIRST, DURABLE);
  await writer.append(KEY, SECOND, DURABLE);
  const [name = ''] = (await readdir(session.folder)).filter((each) => each.endsWith('.jsonl'));
  const path = join(session.folder, name);
  const whole = await readFile(path, 'utf8');
  expect(whole.endsWith(linesOf(BEFORE))).toBe(true);
  return { session, path, whole };
}

const OTHER = linesOf(turnEntries('c#0', 'from elsewhere'));

const FILES: Record<string, (path: string, whole: string) => Promise<void>> = {
  'before the file was appended to': async () => undefined,
  'in the middle of its first line': (path) => appendFile(path, linesOf(FIRST).slice(0, 30)),
  'in the middle of a later line': (path) => appendFile(path, linesOf(NEW).slice(0, -40)),
  'before the rows were deleted': (path) => appendFile(path, linesOf(NEW)),
  'and other lines stand behind them': (path) => appendFile(path, linesOf(NEW) + OTHER),
  'and other lines stand in their place': (path) => appendFile(path, OTHER + OTHER.slice(0, 20)),
  'and the file is an older one': (path, whole) =>
    truncate(path, whole.length - linesOf(turnEntries('c#2', 'two')).length),
  'and the file ends within a line': (path, whole) => truncate(path, whole.length - 25),
  'and the file is empty': (path) => truncate(path, 0),
  'and the file is gone': (path) => rm(path),
};

describe('entries that were committed when the process died', () => {
  test.each(Object.entries(FILES))('stand in the file once: %s', async (_case, change) => {
    const { session, path, whole } = await withRows();
    await change(path, whole);
    // The next process writes the file and dies before it deletes the rows.
    await openOver(session, undeleting(session.store))
      .complete()
      .catch(() => undefined);
    await using store = session.open();
    expect((await store.load(KEY)).filter(isNew)).toEqual(NEW);
    await store.append(KEY, turnEntries('c#5', 'five'), DURABLE);
    const recorded = await session.read(KEY);
    expect(recorded.filter(isNew)).toEqual(NEW);
    expect(recorded.slice(-5)).toEqual(turnEntries('c#5', 'five'));
    expect(await session.store.entries({ after: 0, limit: 10 })).toEqual([]);
  });

  test('are read at once, before they stand in the file', async () => {
    const { session, path, whole } = await withRows();
    await using store = session.open();
    expect((await store.load(KEY)).slice(-10)).toEqual(NEW);
    const { turns } = await store.earlier(KEY, { maxTurns: 9 });
    expect(turns.map(({ turn }) => turn)).toEqual([1, 2, 3, 4]);
    expect((await readFile(path, 'utf8')).length).toBeGreaterThan(whole.length);
    expect(await session.store.entries({ after: 0, limit: 10 })).toHaveLength(2);
  });
});

describe('entries of a running turn', () => {
  const SESSION = sessionOf(message('a', '1'));
  const said = (text: string) => turnEntries('c#9', text).slice(0, 1);
  const answer = { chat: message('a', '1').chat, markdown: 'done' };

  /** A turn in hand, and the sessions of its process. */
  async function atWork() {
    const session = await createSessionFolder();
    const { store } = session;
    const limits = { maxPendingPerChat: 10, maxPending: 10 };
    const came = [{ kind: 'queue', message: message('a', '1') }] as const;
    await store.accept(came, { cursor: undefined, limits });
    const [turn] = (await store.claimTurns(() => 1)).claimed;
    if (turn === undefined) throw new Error('nothing was claimed');
    const sessions = session.open();
    const { epoch, firstSeq: throughSeq } = turn;
    const outbound = [{ ...answer, id: messageId('answer') }];
    const end = () =>
      sessions.endTurn(SESSION, (rows) =>
        store.endTurn(turn, { kind: 'done', throughSeq, outbound }, rows),
      );
    const say = (text: string, durable: boolean) =>
      sessions.append(SESSION, said(text), { durable, epoch });
    return { session, store, sessions, say, end };
  }

  test('are gone with a process that dies before the turn ends', async () => {
    const { session, store, sessions, say } = await atWork();
    await say('soon', false);
    expect(await sessions.load(SESSION)).toEqual(said('soon'));
    expect(await store.entries({ after: 0, limit: 1 })).toEqual([]);
    await using again = session.open();
    expect(await again.load(SESSION)).toEqual([]);
  });

  test('are committed in order with what stands before an effect, and with the answer', async () => {
    const { session, store, say, end } = await atWork();
    await say('first', false);
    await say('effect', true);
    await say('last', false);
    expect(await store.entries({ after: 0, limit: 9 })).toHaveLength(1);
    expect(await end()).toBe('ended');
    expect(await store.isDelivering(answer.chat)).toBe(true);
    await using again = session.open();
    const texts = ['first', 'effect', 'last'].flatMap(said);
    expect(await again.load(SESSION)).toEqual(texts);
    expect(await session.read(SESSION)).toEqual(texts);
  });

  test('are not written by a worker that has lost its claim', async () => {
    const { session, store, sessions, say, end } = await atWork();
    await say('mine', true);
    await say('too late', false);
    await store.recoverTurns();
    await expect(say('an effect', true)).rejects.toThrow('has lost its session');
    expect(await end()).toBe('lost');
    expect(await sessions.load(SESSION)).toEqual(said('mine'));
    expect(await session.read(SESSION)).toEqual(said('mine'));
    expect(await store.isDelivering(answer.chat)).toBe(false);
  });
});

describe('forgetting', () => {
  const holds = (text: string) => text.includes('velvet otter');

  test('leaves nothing in rows and files, also when it was killed with a full journal', async () => {
    const session = await createSessionFolder();
    const writer = session.open();
    await writer.append(KEY, turnEntries('c#1', 'my word is velvet otter'), DURABLE);
    const dying = openOver(session, undeleting(session.store));
    await expect(forgetInSessions(dying, [KEY], holds)).rejects.toThrow('killed');
    await using store = session.open();
    await forgetInSessions(store, [KEY], holds);
    await session.complete();
    const names = await readdir(session.folder);
    for (const name of names.filter((each) => each.includes('jsonl'))) {
      expect(await readFile(join(session.folder, name), 'utf8')).not.toContain('velvet otter');
    }
    expect(await session.read(KEY)).toHaveLength(5);
    await session.store.scrub();
    expect((await readFile(session.state)).includes('velvet otter')).toBe(false);
    expect((await readFile(`${session.state}-wal`)).includes('velvet otter')).toBe(false);
  });
});

describe('a session whose file cannot be written', () => {
  const OTHER = sessionKey('telegram:43');
  const none = () => false;

  test('is reported once and left out; the others are listed, exported and forgotten', async () => {
    const session = await createSessionFolder();
    const reports: unknown[] = [];
    const error = (text: string, fields?: LogFields) => reports.push([text, fields?.['session']]);
    const { folder, store, clock } = session;
    const log = { ...silentLogger, error };
    const sessions = createJsonlSessionStore({ folder, store, clock, log, policy: () => ROOMY });
    await sessions.append(KEY, BEFORE, DURABLE);
    await sessions.complete();
    await sessions.append(KEY, FIRST, DURABLE);
    await sessions.append(OTHER, BEFORE, DURABLE);
    const [name = ''] = (await readdir(folder)).filter((each) => each.endsWith('.jsonl'));
    await withUnreadable([join(folder, '..')], join(folder, name), async () => {
      expect([...(await sessions.complete()).keys()]).toEqual([KEY]);
      expect(await sessionsOfChats(sessions, [OTHER])).toEqual([OTHER]);
      expect(await chatsOfChannel(sessions, 'telegram')).toEqual([KEY, OTHER]);
      expect((await forgetInSessions(sessions, [OTHER], none)).entries).toBe(0);
      await expect(forgetInSessions(sessions, [KEY], none)).rejects.toThrow('EACCES');
      await expect(sessions.exclusively(KEY, async () => undefined)).rejects.toThrow('not usable');
      expect(await Array.fromAsync(readSession(folder, stemOf(OTHER)))).toEqual(BEFORE);
    });
    expect(reports).toEqual([[expect.stringContaining('not written'), KEY]]);
    expect((await sessions.complete()).size).toBe(0);
    expect(await session.read(KEY)).toEqual([...BEFORE, ...FIRST]);
  });
});

describe('a command', () => {
  /** A home whose last entries are rows only, as a process left it that died or runs on. */
  async function homeWithRows(clock: Clock) {
    const home = homeOf({ NANOBOT_HOME: await temporaryFolder() });
    const store = await openEntryRows(clock, home.state);
    const deps = { folder: home.sessions, store, clock, log: silentLogger, policy: () => ROOMY };
    const sessions = createJsonlSessionStore(deps);
    await sessions.append(KEY, BEFORE, DURABLE);
    const recorded = () => Array.fromAsync(readSession(home.sessions, stemOf(KEY)));
    expect(await recorded()).toEqual([]);
    return { home, store, recorded };
  }

  test('completes the files where no gateway runs', async () => {
    const { home, store, recorded } = await homeWithRows(createMovableClock());
    await completeSessions(home, systemClock);
    expect(await recorded()).toEqual(BEFORE);
    expect(await store.entries({ after: 0, limit: 9 })).toEqual([]);
    await (await holdHome(home.lock, {}))[Symbol.asyncDispose]();
  });

  test('waits for the gateway that runs', async () => {
    const { home, recorded } = await homeWithRows(systemClock);
    const held = await holdHome(home.lock, {});
    await completeSessions(home, systemClock).finally(() => held[Symbol.asyncDispose]());
    expect(await recorded()).toEqual(BEFORE);
  });

  test('names the session whose file the gateway cannot write, at once', async () => {
    const { home } = await homeWithRows(createMovableClock());
    const held = await holdHome(home.lock, {});
    const name = formatName({ stem: stemOf(KEY), day: '2026-01-15', part: 1 });
    await mkdir(join(home.sessions, name), { recursive: true });
    const unwritten = await completeSessions(home, createMovableClock()).finally(() =>
      held[Symbol.asyncDispose](),
    );
    expect([...unwritten]).toEqual([
      [KEY, expect.objectContaining({ message: expect.stringContaining(name) })],
    ]);
    expect([...(await completeSessions(home, systemClock)).keys()]).toEqual([KEY]);
  });

  test('deletes everything beside a gateway whose journal is full', async () => {
    const { home, store, recorded } = await homeWithRows(systemClock);
    const held = await holdHome(home.lock, {});
    await completeSessions(home, systemClock).finally(() => held[Symbol.asyncDispose]());
    const { root: workspace, sessions: folder } = home;
    await createSessionMaintenance({ folder, workspace, clock: systemClock }).nuke();
    await completeSessions(home, systemClock);
    expect(await recorded()).toEqual([]);
    expect(await store.entries({ after: 0, limit: 9 })).toEqual([]);
    expect((await readdir(folder)).filter((name) => name.endsWith('.jsonl'))).toEqual([]);
  });
});
