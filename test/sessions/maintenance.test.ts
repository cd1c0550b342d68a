import { mkdir, readdir, readFile, rename, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import { stemOf } from '../../src/kernel/sessions/file-lines.ts';
import { forgetInSessions } from '../../src/kernel/sessions/forget.ts';
import { createSessionMaintenance } from '../../src/kernel/sessions/maintenance.ts';
import { turnEntries } from '../contract/session-store.ts';
import { userEntry } from '../contract/user-entry.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withUnreadable } from '../support/unreadable.ts';
import { createSessionFolder } from './session-folder.ts';

const ANNA = sessionKey('telegram:1');
const BERT = sessionKey('telegram:2');
const DURABLE = { durable: true };
const DAY_MS = 86_400_000;
const unreadable = (error: unknown) => {
  throw error;
};

/** Anna spoke on two days, Bert on the first only. Now it is ten days later. */
async function createHistory() {
  const session = await createSessionFolder();
  const { clock } = session;
  const workspace = await temporaryFolder();
  const store = session.open();
  onTestFinished(() => store[Symbol.asyncDispose]());
  await store.append(ANNA, turnEntries('t1', 'Where is the blue bicycle?', clock.now()), DURABLE);
  await store.append(BERT, turnEntries('t1', 'Bert says "hi"\nthere', clock.now()), DURABLE);
  await clock.advance(DAY_MS);
  await store.append(ANNA, turnEntries('t2', 'And the red one?', clock.now()), DURABLE);
  await clock.advance(10 * DAY_MS);
  await session.complete();
  const care = createSessionMaintenance({ folder: session.folder, workspace, clock });
  return { ...session, workspace, store, care };
}

const joined = async (pieces: AsyncIterable<string>) => (await Array.fromAsync(pieces)).join('');

describe('the care of session files', () => {
  test('lists the newest session first, with sizes and messages, as many as asked for', async () => {
    const { care } = await createHistory();
    expect((await care.list()).map(({ key, files, messages }) => [key, files, messages])).toEqual([
      [ANNA, 2, 6],
      [BERT, 1, 3],
    ]);
    expect(await care.list({ limit: 1 })).toHaveLength(1);
  });

  test('lists every session under its own key, whatever characters it has', async () => {
    const { open, list } = await createSessionFolder();
    await using store = open();
    const keys = [
      'a:b',
      'a_b',
      'A:b',
      'a%3Ab',
      'a/b',
      '../a',
      '.a',
      `email:${'x'.repeat(400)}`,
    ].map(sessionKey);
    for (const key of keys) await store.append(key, [userEntry('t1', 'hello')], DURABLE);
    expect((await list()).map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
  });

  test('treats a file that lies elsewhere behind a link like any other', async () => {
    const { care, store, folder, complete } = await createHistory();
    const elsewhere = join(await temporaryFolder(), 'anna.jsonl');
    const newest = (await readdir(folder))
      .filter((name) => name.startsWith('telegram%3A1_'))
      .at(-1);
    const path = join(folder, newest ?? '');
    await rename(path, elsewhere);
    await symlink(elsewhere, path);
    await store.append(ANNA, turnEntries('t3', 'Is the green one here?', 0), DURABLE);
    await complete();
    expect((await care.list()).find(({ key }) => key === ANNA)?.messages).toBe(9);
    expect(await joined(care.export(ANNA, 'md'))).toContain('green one');
    await care.archive({ olderThanMs: 0 });
    expect(await readFile(path, 'utf8')).toBe(await readFile(elsewhere, 'utf8'));
    const exclusively = (_: unknown, task: () => Promise<void>) => task();
    const holds = (text: string) => text.includes('red one');
    await forgetInSessions({ folder, complete: store.complete, exclusively }, [ANNA], holds);
    expect(await readFile(elsewhere, 'utf8')).not.toContain('red one');
    await care.nuke();
    await expect(readFile(elsewhere)).rejects.toThrow('ENOENT');
    expect(await care.list()).toEqual([]);
  });

  test('keeps what a reset hides from the model', async () => {
    const { open, read } = await createSessionFolder();
    await using store = open();
    const entries = [...turnEntries('t1', 'old'), { role: 'reset', at: 1 } as const];
    await store.append(ANNA, entries, DURABLE);
    expect(await store.load(ANNA)).toEqual([]);
    expect(await read(ANNA)).toEqual(entries);
  });

  test('exports every entry once, as JSONL that reads like a session file', async () => {
    const { care, read } = await createHistory();
    const text = await joined(care.export(ANNA, 'jsonl'));
    const lines = text.trimEnd().split('\n');
    expect(lines).toHaveLength(1 + (await read(ANNA)).length);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ session_key: ANNA });
    expect(text).not.toContain('carried":true');
  });

  test('exports Markdown that tells who said what, and whose fences hold', async () => {
    const { care, store, clock, complete } = await createHistory();
    const [, called, result] = turnEntries('t3', 'x', clock.now());
    if (called === undefined || result?.role !== 'tool') throw new TypeError('no tool result');
    await store.append(ANNA, [called, { ...result, text: '```\nfenced\n```' }], DURABLE);
    const parts = { text: 'She rides.', untrusted: 'A page sells bicycles.' };
    const summary = { role: 'summary', ...parts, isForeign: true, at: clock.now() } as const;
    await store.append(ANNA, [summary], DURABLE);
    await complete();
    const text = await joined(care.export(ANNA, 'md'));
    expect(text).toContain('## User · 2026-01-15 12:00 UTC\n\nWhere is the blue bicycle?');
    expect(text).toContain('````\n```\nfenced\n```\n````');
    expect(text).toContain('She rides.\n\n_Untrusted part:_\n\nA page sells bicycles.');
  });

  test.each([
    ['BLUE bicycle', ANNA, 2],
    ['bicycle  blue', ANNA, 2],
    ['bicycle green', undefined, 0],
    ['hi" there', BERT, 2],
    ['green', undefined, 0],
    ['', undefined, 0],
    ['.*', undefined, 0],
  ])('finds %j by words, not by patterns', async (query, session, count) => {
    const { care } = await createHistory();
    const hits = await Array.fromAsync(care.search(query, { limit: 10, unreadable }));
    expect(hits.map((hit) => hit.session)).toEqual(Array(count).fill(session));
  });

  test('stops searching at the limit', async () => {
    const { care } = await createHistory();
    expect(await Array.fromAsync(care.search('answer', { limit: 2, unreadable }))).toHaveLength(2);
  });

  test('purges by the last entry, and a running store goes on with a new file', async () => {
    const { care, store, fileNames } = await createHistory();
    expect(await store.load(BERT)).toHaveLength(5);
    expect(await care.purge({ olderThanMs: 10.5 * DAY_MS })).toMatchObject({ files: 2 });
    expect(await fileNames()).toEqual(['telegram%3A1_2026-01-16.jsonl']);
    expect(await store.load(BERT)).toEqual([]);
    await store.append(BERT, [userEntry('t9', 'back again')], DURABLE);
    expect(await store.load(BERT)).toHaveLength(1);
  });

  test('lists and purges the sessions around a file that cannot be read', async () => {
    const { care, folder, fileNames, workspace } = await createHistory();
    const names = await fileNames();
    const unreadable = join(folder, names.find((name) => name.startsWith(stemOf(ANNA))) ?? '');
    await withUnreadable([dirname(folder), workspace], unreadable, async () => {
      const listed = await care.list();
      expect(listed.map(({ key, problem }) => [key, problem !== undefined])).toEqual([
        [ANNA, true],
        [BERT, false],
      ]);
      const failures: unknown[] = [];
      const search = { limit: 10, unreadable: (error: unknown) => failures.push(error) };
      expect(await Array.fromAsync(care.search('there', search))).toHaveLength(2);
      expect(String(failures)).toContain(`open '${unreadable}'`);
      await care.purge({ olderThanMs: 5 * DAY_MS });
    });
    expect((await fileNames()).filter((name) => name.startsWith(stemOf(BERT)))).toEqual([]);
  });

  test('archives all but the newest file of a session, and exports still have everything', async () => {
    const { care, fileNames, store } = await createHistory();
    const before = await joined(care.export(ANNA, 'jsonl'));
    const report = await care.archive({ olderThanMs: DAY_MS });
    expect(report).toMatchObject({
      moved: { files: 1 },
      active: { files: 2 },
      archived: { files: 1 },
    });
    expect(await fileNames()).toEqual([
      'telegram%3A1_2026-01-16.jsonl',
      'telegram%3A2_2026-01-15.jsonl',
    ]);
    expect(await joined(care.export(ANNA, 'jsonl'))).toBe(before);
    expect(await store.load(ANNA)).toHaveLength(9);
  });

  test('writes extracts once, again when the session is newer, and takes them away with the session', async () => {
    const { care, workspace } = await createHistory();
    expect(await care.index()).toEqual({ written: 3, present: 0 });
    expect(await care.index()).toEqual({ written: 0, present: 3 });
    const folder = join(workspace, 'memory', 'sessions');
    const names = await readdir(folder);
    expect(names.every((name) => /^SESSION_[0-9a-f]{16}\.md$/.test(name))).toBe(true);
    await utimes(join(folder, names[0] ?? ''), 0, 0);
    expect(await care.index()).toEqual({ written: 1, present: 2 });
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
    expect(texts.join('')).toContain('- user: Where is the blue bicycle?');
    await care.purge({ olderThanMs: 10.5 * DAY_MS });
    expect(await readdir(folder)).toHaveLength(1);
  });

  test('nukes every conversation, the archived and the extracted ones too, and nothing else', async () => {
    const { care, workspace, folder, store } = await createHistory();
    await care.index();
    await care.archive({ olderThanMs: DAY_MS });
    await writeFile(join(workspace, 'memory', 'MEMORY.md'), '# Memory\n');
    await mkdir(join(workspace, 'memory', 'sessions', 'mine'));
    expect(await care.nuke()).toMatchObject({ sessions: 2, files: 3 });
    expect(await readdir(folder)).toEqual([]);
    expect(await readdir(join(workspace, 'memory', 'sessions'))).toEqual(['mine']);
    expect(await store.load(ANNA)).toEqual([]);
    await store.append(ANNA, [userEntry('t9', 'from the beginning')], DURABLE);
    expect(await store.load(ANNA)).toHaveLength(1);
  });

  test('an empty or missing folder is an empty answer, not an error', async () => {
    const folder = join(await temporaryFolder(), 'missing');
    const { clock } = await createSessionFolder();
    const care = createSessionMaintenance({ folder, workspace: await temporaryFolder(), clock });
    expect(await care.list()).toEqual([]);
    expect(await care.nuke()).toEqual({ sessions: 0, files: 0, bytes: 0 });
    expect(await joined(care.export(ANNA, 'md'))).toBe('');
  });
});
