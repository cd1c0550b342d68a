// The people of a home, seen and changed at the command line with no gateway beside it.

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;
const run = (...args: string[]) => runNanobot(args, { home: home.path });
const listed = async () => JSON.parse((await run('people', 'list', '--json')).stdout);

beforeAll(async () => {
  home = await temporaryHome();
  await run('agent', '-m', 'hello', '-s', 'one');
});
afterAll(() => home[Symbol.asyncDispose]());

test('whoever sits at the machine is one person over its own doors', async () => {
  const [person, ...others] = await listed();
  expect(others).toEqual([]);
  expect(person.doors.map(({ channel }: { channel: string }) => channel).sort()).toEqual([
    'terminal',
    'web',
  ]);
  expect((await run('people', 'list')).stdout).toContain(person.id);
});

test('language, time zone and name are set, shown and taken back', async () => {
  const [{ id }] = await listed();
  const set = [
    '--name',
    'Ann',
    '--language',
    'de',
    '--timezone',
    'Europe/Berlin',
    '--quiet',
    '22:00-7:00',
  ];
  expect((await run('people', 'set', id, ...set)).code).toBe(0);
  const shown = JSON.parse((await run('people', 'show', 'ann', '--json')).stdout);
  expect(shown).toMatchObject({ id, name: 'Ann', language: 'de', timeZone: 'Europe/Berlin' });
  expect(shown.quietHours).toBe('22:00-07:00');
  expect((await run('people', 'set', 'Ann', '--language', 'auto')).code).toBe(0);
  expect(JSON.parse((await run('people', 'show', id, '--json')).stdout).language).toBeUndefined();
  expect((await run('people', 'show', id)).stdout).toContain('Europe/Berlin');
  expect((await run('people', 'set', id, '--channel', 'web')).code).toBe(0);
  expect((await listed())[0].preferredDoor).toBe('web');
});

test('limits are set, shown and taken back one by one', async () => {
  const set = ['--messages-per-day', '50', '--money-per-day', '0.5', '--tokens-per-day', '0'];
  expect((await run('people', 'set', 'Ann', ...set)).code).toBe(0);
  await run('people', 'set', 'Ann', '--tokens-per-day', 'auto');
  expect((await listed())[0].limits).toEqual({ perDay: 50, moneyPerDay: 0.5 });
  expect((await run('people', 'show', 'Ann')).stdout).toContain(
    '50 messages a day, 0.5 money a day',
  );
});

test.each([
  [['set', 'Ann', '--messages-per-day', '1.5'], 2, 'not a number of messages a day'],
  [['set', 'Ann', '--tokens-per-day', '-1'], 2, 'not a number of tokens a day'],
  [['set', 'Ann', '--timezone', 'Mars/Base'], 2, 'Unknown time zone'],
  [['set', 'Ann', '--language', 'klingonese'], 2, 'Unknown language'],
  [['set', 'Ann', '--quiet', '22-7'], 2, 'Invalid hours'],
  [['set', 'Ann'], 2, 'nothing to change'],
  [['set', 'Ann', '--door', 'telegram'], 2, 'has no channel telegram'],
  [['set', 'Ann', '--conversations', 'shared'], 2, 'no chat yet'],
  [['show', 'nobody'], 6, 'there is no person'],
  [['merge', 'Ann', 'Ann'], 2, 'the same person'],
])('people %j is refused with a reason', async (args, code, words) => {
  const result = await run('people', ...args);
  expect(result.stderr).toContain(words);
  expect(result.code).toBe(code);
});

test('the language and the time of a person are in their next turn', async () => {
  await run('people', 'set', 'Ann', '--timezone', 'Asia/Tokyo');
  const { stdout } = await run('agent', '-m', 'what time is it', '-s', 'two');
  expect(stdout).toContain('Asia/Tokyo');
});

test('a forgotten person is gone with their role and notes', async () => {
  const [{ id }] = await listed();
  await run('people', 'set', id, '--role', 'owner');
  expect((await run('pair', 'list')).stdout).toContain('terminal');
  const notes = join(home.path, 'workspace', 'people', id);
  await mkdir(notes, { recursive: true });
  await writeFile(join(notes, 'x.md'), 'x');
  expect((await run('people', 'forget', id)).code).toBe(0);
  expect(await listed()).toEqual([]);
  expect((await run('pair', 'list')).stdout).not.toContain('terminal');
  await expect(stat(notes)).rejects.toThrow('ENOENT');
});
