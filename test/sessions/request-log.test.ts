// What models were asked with is kept beside the conversation: each piece once, without secrets, within
// bounds, and no longer than the conversation.

import { appendFile, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { createSessionMaintenance } from '../../src/kernel/sessions/maintenance.ts';
import { createRequestFiles, readRequests } from '../../src/kernel/sessions/request-log.ts';
import { holdsWords } from '../../src/kernel/sessions/rules/forgetting.ts';
import { recordedAsk } from '../../src/kernel/sessions/rules/request-records.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { userEntry } from '../contract/user-entry.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createSessionFolder } from './session-folder.ts';

const ANNA = sessionKey('telegram:1');
const BERT = sessionKey('telegram:2');
const DAY_MS = 86_400_000;

async function createShelf(maxBytes?: number) {
  const session = await createSessionFolder();
  const { folder, clock } = session;
  const open = () =>
    createRequestFiles({
      ...{ folder, clock, log: silentLogger },
      redact: (text) => text.replaceAll('hunter2', '***'),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
  let peopleRows = open();
  const path = join(folder, 'asked', 'telegram%3A1.jsonl');
  const ask = (memory: string, named = memory, key = ANNA) => {
    const told = {
      ...{ model: 'openai/sim', thinkingBudget: 0, rights: ALL_RIGHTS },
      prompt: [
        ['identity', 'p-identity'],
        ['Memory', `p-${named}`],
      ],
    };
    const piece = { print: `a-${named}`, text: JSON.stringify(told) };
    peopleRows.keep(key, piece, () => [
      { print: 'p-identity', text: 'You are nanobot.' },
      { print: `p-${named}`, text: memory },
      { print: 't-search', text: 'Searches files.', isCommon: true },
    ]);
  };
  /** All that was asked for is done. */
  const settled = async () => {
    await peopleRows[Symbol.asyncDispose]();
    return (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '').length;
  };
  const restart = async () => {
    await peopleRows[Symbol.asyncDispose]();
    peopleRows = open();
  };
  const read = async (named: string) => recordedAsk(`a-${named}`, await readRequests(folder, ANNA));
  onTestFinished(() => peopleRows[Symbol.asyncDispose]());
  return { ...session, path, ask, settled, restart, read, peopleRows: () => peopleRows };
}

test('each piece is written once, for its owner alone, and nothing where nothing changed', async () => {
  const { path, ask, settled, restart, read, clock } = await createShelf();
  ask('The key is hunter2.', 'one');
  ask('The key is hunter2.', 'one');
  expect(await settled()).toBe(3);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await read('one'))?.prompt).toEqual([
    { name: 'identity', text: 'You are nanobot.' },
    { name: 'Memory', text: 'The key is ***.' },
  ]);
  const before = await stat(path, { bigint: true });
  await clock.advance(2 * 60_000);
  ask('The key is hunter2.', 'one');
  await settled();
  await restart();
  ask('The key is hunter2.', 'one');
  await settled();
  expect((await stat(path, { bigint: true })).mtimeNs).toBe(before.mtimeNs);
  ask('There is no key.', 'two');
  expect(await settled()).toBe(5);
});

test('what all conversations are asked with is stored once, outlives each, and is erased too', async () => {
  const { folder, path, ask, settled, restart, clock, peopleRows } = await createShelf();
  const shared = join(folder, 'asked', 'common.jsonl');
  const times = async () => (await readFile(shared, 'utf8')).split('t-search').length - 1;
  const stored = async () => (await readRequests(folder, BERT)).get('t-search');
  ask('of Anna', 'one');
  ask('of Bert', 'two', BERT);
  await settled();
  await restart();
  ask('of Bert', 'three', BERT);
  await settled();
  expect([await times(), await stored()]).toEqual([1, 'Searches files.']);
  expect(await readFile(path, 'utf8')).not.toContain('t-search');
  const care = createSessionMaintenance({ folder, workspace: await temporaryFolder(), clock });
  await clock.advance(10 * DAY_MS);
  await care.purge({ olderThanMs: 5 * DAY_MS });
  expect(await times()).toBe(1);
  expect(await peopleRows().forget(['telegram:1'], holdsWords('searches') ?? (() => false))).toBe(
    1,
  );
  expect(await stored()).toBe('[forgotten]');
  await rm(shared);
  await clock.advance(61_000);
  ask('of Bert', 'four', BERT);
  await peopleRows()[Symbol.asyncDispose]();
  expect(await stored()).toBe('Searches files.');
});

test('what was torn by a kill or deleted by another process is written again', async () => {
  const { path, ask, settled, restart, read, clock } = await createShelf();
  ask('Tea at four.', 'tea');
  await settled();
  const whole = await readFile(path, 'utf8');
  await writeFile(path, whole.slice(0, -40));
  await restart();
  expect(await read('tea')).toBeUndefined();
  ask('Tea at four.', 'tea');
  await settled();
  expect((await read('tea'))?.lost).toEqual([]);
  await rm(path);
  await clock.advance(61_000);
  ask('Tea at four.', 'tea');
  await settled();
  expect((await read('tea'))?.lost).toEqual([]);
});

test('a file that grows beyond its bound loses its older half, and never what is asked with now', async () => {
  const { path, ask, settled, read } = await createShelf(8000);
  for (let day = 1; day <= 30; day += 1) {
    ask(`day ${day} hunter2 ${'x'.repeat(500)}`, `${day}`);
    await settled();
    expect((await read(`${day}`))?.lost).toEqual([]);
    expect((await stat(path)).size).toBeLessThanOrEqual(8000);
    expect(await readFile(path, 'utf8')).not.toContain('hunter2');
  }
  expect((await read('29'))?.lost).toEqual([]);
  expect(await read('1')).toBeUndefined();
});

test('words that are forgotten leave it, with what a kill left behind, and are missed when it is read', async () => {
  const { path, folder, ask, settled, read, peopleRows } = await createShelf();
  ask('Likes tea.\nThe dentist is Quasimodo.', 'dentist');
  ask('Quasimodo', 'theirs', BERT);
  await settled();
  await appendFile(path, '\n{"print":"x","text":"Quasimo do"');
  const torn = `.telegram%3A1.jsonl.${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}.tmp`;
  await writeFile(join(folder, 'asked', torn), 'Quasimodo');
  const holds = holdsWords('quasimodo') ?? (() => false);
  expect(await peopleRows().forget(['telegram:1'], holds)).toBe(1);
  expect(await peopleRows().forget(['telegram:1'], holds)).toBe(0);
  expect(await readdir(join(folder, 'asked'))).toEqual([
    'common.jsonl',
    'telegram%3A1.jsonl',
    'telegram%3A2.jsonl',
  ]);
  expect(await readFile(path, 'utf8')).not.toMatch(/quasimo/i);
  const left = await read('dentist');
  expect([left?.prompt?.at(1)?.text, left?.lost]).toEqual([
    'Likes tea.\n[forgotten]',
    ['prompt: Memory'],
  ]);
  expect((await readRequests(folder, BERT)).get('p-theirs')).toBe('Quasimodo');
});

test('it goes with the conversation that names it, and what is still named stays', async () => {
  const { folder, clock, complete, open, ask, settled, read } = await createShelf();
  await using store = open();
  const said = async (key: typeof ANNA, named: string) => {
    ask(`what ${named} knows`, named, key);
    const answer = {
      role: 'assistant' as const,
      ...{ turnId: turnId(named), text: 'yes', toolCalls: [], thinking: [] },
      ...{ model: 'openai/sim', asked: `a-${named}`, at: clock.now() },
    };
    await store.append(key, [userEntry(named, 'hi', clock.now()), answer], { durable: true });
    await settled();
    // What is purged is what stands in the files.
    await complete();
  };
  await said(ANNA, 'old');
  await said(BERT, 'gone');
  await clock.advance(10 * DAY_MS);
  await said(ANNA, 'new');
  // A turn that runs may come to name it.
  ask('what nobody named yet', 'young');
  await settled();
  const care = createSessionMaintenance({ folder, workspace: await temporaryFolder(), clock });
  await care.purge({ olderThanMs: 5 * DAY_MS });
  expect((await read('new'))?.lost).toEqual([]);
  expect((await read('young'))?.lost).toEqual([]);
  expect([await read('old'), (await readRequests(folder, ANNA)).has('p-old')]).toEqual([
    undefined,
    false,
  ]);
  expect(await readdir(join(folder, 'asked'))).toEqual(['common.jsonl', 'telegram%3A1.jsonl']);
  await care.nuke();
  await expect(readdir(join(folder, 'asked'))).rejects.toThrow('ENOENT');
});
