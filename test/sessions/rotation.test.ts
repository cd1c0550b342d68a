import { readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { turnEntries } from '../contract/session-store.ts';
import { userEntry } from '../contract/user-entry.ts';
import { createSessionFolder } from './session-folder.ts';

const KEY = sessionKey('telegram:42');
const DURABLE = { durable: true };
const HOUR_MS = 3_600_000;

describe('session files rotate', () => {
  test.each([
    ['UTC', 11, 12],
    ['Asia/Tokyo', 2, 3],
  ])('at midnight in %s', async (timeZone, hoursBefore, hoursUntil) => {
    const { open, clock, fileNames } = await createSessionFolder({ timeZone });
    await using store = open();
    await store.append(KEY, turnEntries('t1', 'noon'), DURABLE);
    await clock.advance(hoursBefore * HOUR_MS);
    await store.append(KEY, turnEntries('t2', 'evening'), DURABLE);
    expect(await fileNames()).toEqual(['telegram%3A42_2026-01-15.jsonl']);
    await clock.advance((hoursUntil - hoursBefore) * HOUR_MS);
    await store.append(KEY, turnEntries('t3', 'next day'), DURABLE);
    expect(await fileNames()).toEqual([
      'telegram%3A42_2026-01-15.jsonl',
      'telegram%3A42_2026-01-16.jsonl',
    ]);
  });

  test('never inside a turn, also when midnight passes in it and messages steer it', async () => {
    const { open, clock, fileNames } = await createSessionFolder();
    await using store = open();
    const [asked, ...rest] = turnEntries('t1', 'late question');
    if (asked !== undefined) await store.append(KEY, [asked], DURABLE);
    await clock.advance(24 * HOUR_MS);
    await store.append(KEY, [userEntry('t1', 'and one more thing')], DURABLE);
    await store.append(KEY, rest, DURABLE);
    expect(await fileNames()).toHaveLength(1);
    expect(await store.turn(KEY, turnId('t1'))).toHaveLength(6);
  });

  test.each([
    ['size', { rotationSizeBytes: 10_000 }],
    ['tokens', { rotationTokens: 2500 }],
  ])('above the threshold of %s, and no line is lost or counted twice', async (_, policy) => {
    const { open, fileNames, list, read } = await createSessionFolder(policy);
    await using store = open();
    for (let turn = 0; turn < 60; turn += 1) {
      await store.append(KEY, turnEntries(`t${turn}`, `question ${turn}`), DURABLE);
    }
    const names = await fileNames();
    expect(names.length).toBeGreaterThan(3);
    expect(names).toContain('telegram%3A42_2026-01-15_2.jsonl');
    const all = await read(KEY);
    const expected = Array.from({ length: 60 }, (__, turn) =>
      turnEntries(`t${turn}`, `question ${turn}`),
    ).flat();
    expect(all).toEqual(expected);
    const [info] = await list();
    expect(info).toMatchObject({ files: names.length, messages: 180 });
  });

  test('a new file opens with the summary and the last messages, marked as carried', async () => {
    const { open, clock, linesOf } = await createSessionFolder({ rotationCarryMessages: 2 });
    await using store = open();
    await store.append(KEY, [{ role: 'summary', text: 'so far', at: 1 }], DURABLE);
    await store.append(KEY, turnEntries('t1', 'yesterday'), DURABLE);
    await clock.advance(24 * HOUR_MS);
    await store.append(KEY, [userEntry('t2', 'today')], DURABLE);
    const lines = await linesOf('telegram%3A42_2026-01-16.jsonl');
    expect(lines[0]).toMatchObject({
      _type: 'metadata',
      session_key: 'telegram:42',
      metadata: { continues: 'telegram%3A42_2026-01-15.jsonl', carried: 4 },
    });
    expect(lines.slice(1).map((line) => [line['role'], line['carried']])).toEqual([
      ['summary', true],
      ['assistant', true],
      ['tool', true],
      ['assistant', true],
      ['user', undefined],
    ]);
    const before = await store.load(KEY);
    await store[Symbol.asyncDispose]();
    await using again = open();
    expect(await again.load(KEY)).toEqual(before);
  });

  test('with nothing when nothing is to be carried', async () => {
    const { open, clock } = await createSessionFolder({ carry: 'nothing' });
    await using store = open();
    await store.append(KEY, turnEntries('t1', 'yesterday'), DURABLE);
    await clock.advance(24 * HOUR_MS);
    await store.append(KEY, [userEntry('t2', 'today')], DURABLE);
    expect(await store.load(KEY)).toEqual([userEntry('t2', 'today')]);
  });

  test('a carry larger than the threshold does not rotate at every turn', async () => {
    const policy = { rotationSizeBytes: 10_000, rotationCarryMessages: 50 };
    const { open, fileNames } = await createSessionFolder(policy);
    await using store = open();
    for (let turn = 0; turn < 40; turn += 1) {
      await store.append(KEY, [userEntry(`t${turn}`, 'x'.repeat(900))], DURABLE);
    }
    expect((await fileNames()).length).toBeLessThan(6);
  });

  test.each([true, false])(
    'a turn that ended the file before is still found (restart: %s)',
    async (restart) => {
      const { open, clock } = await createSessionFolder();
      const store = open();
      const first = turnEntries('t1', 'yesterday');
      await store.append(KEY, first, DURABLE);
      await clock.advance(24 * HOUR_MS);
      await store.append(KEY, [userEntry('t2', 'today')], DURABLE);
      if (restart) await store[Symbol.asyncDispose]();
      await using again = restart ? open() : store;
      expect(await again.turn(KEY, turnId('t1'))).toEqual(first);
    },
  );

  test('a session that rested for a year is found and goes on where it was', async () => {
    const { open, clock, fileNames } = await createSessionFolder();
    const store = open();
    await store.append(KEY, turnEntries('t1', 'last year'), DURABLE);
    await store[Symbol.asyncDispose]();
    await clock.advance(365 * 24 * HOUR_MS);
    await using again = open();
    expect(await again.load(KEY)).toHaveLength(5);
    await again.append(KEY, [userEntry('t2', 'hello again')], DURABLE);
    expect(await again.load(KEY)).toHaveLength(5);
    expect(await fileNames()).toHaveLength(2);
  });

  test('a clock that goes back a day does not open an older file', async () => {
    const policy = { timeZone: 'Asia/Tokyo' };
    const { open, clock, fileNames } = await createSessionFolder(policy);
    await using store = open();
    await clock.advance(4 * HOUR_MS);
    await store.append(KEY, [userEntry('t1', 'after midnight in Tokyo')], DURABLE);
    policy.timeZone = 'America/Los_Angeles';
    await store.append(KEY, [userEntry('t2', 'the day before in Los Angeles')], DURABLE);
    expect(await fileNames()).toEqual(['telegram%3A42_2026-01-16.jsonl']);
  });
});

describe('the newest file is found', () => {
  const DAY_MS = 24 * HOUR_MS;

  async function createTwoDays() {
    const session = await createSessionFolder();
    const store = session.open();
    await store.append(KEY, turnEntries('t1', 'first day'), DURABLE);
    await session.clock.advance(DAY_MS);
    await store.append(KEY, turnEntries('t2', 'second day'), DURABLE);
    await store[Symbol.asyncDispose]();
    const expected = [...turnEntries('t1', 'first day'), ...turnEntries('t2', 'second day')].filter(
      (entry) => entry.role !== 'turn_end' || entry.turnId === 't2',
    );
    return { ...session, expected, index: join(session.folder, '.index') };
  }

  test('when the index was deleted, also long after', async () => {
    const { open, clock, index, expected } = await createTwoDays();
    await rm(index, { recursive: true });
    await clock.advance(100 * DAY_MS);
    await using store = open();
    expect(await store.load(KEY)).toEqual(expected);
  });

  test('when a power cut lost the link of the day', async () => {
    const { open, clock, folder, index, expected } = await createTwoDays();
    const [link = ''] = (await readdir(index, { recursive: true })).filter((name) =>
      name.includes('/'),
    );
    await rm(join(index, link));
    await symlink('../../telegram%3A42_2026-01-15.jsonl', join(index, link));
    await clock.advance(DAY_MS);
    await using store = open();
    expect(await store.load(KEY)).toEqual(expected);
    expect(await readdir(folder)).toContain('telegram%3A42_2026-01-16.jsonl');
  });

  test('when the program ended between the link and the file, long after', async () => {
    const { open, clock, index, expected } = await createTwoDays();
    const [link = ''] = (await readdir(index, { recursive: true })).filter((name) =>
      name.includes('/'),
    );
    await rm(join(index, link));
    await symlink('../../telegram%3A42_2026-01-17.jsonl', join(index, link));
    await clock.advance(100 * DAY_MS);
    await using store = open();
    expect(await store.load(KEY)).toEqual(expected);
  });
});
