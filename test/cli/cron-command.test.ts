// Jobs made, shown and changed at the command line, with no gateway beside it.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;
const run = (...args: string[]) => runNanobot(['cron', ...args], { home: home.path });
const listed = async () => JSON.parse((await run('list', '--json')).stdout);

beforeAll(async () => {
  home = await temporaryHome();
  await runNanobot(['agent', '-m', 'hello', '-s', 'one'], { home: home.path });
});
afterAll(() => home[Symbol.asyncDispose]());

test('a job is made, listed with its next run in its zone, switched, asked to run and removed', async () => {
  const when = ['--cron', '0 8 * * *', '--timezone', 'Asia/Kathmandu', '--to', 'telegram:42'];
  const made = await run('add', 'Tell the news', '--name', 'News', ...when);
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('08:00:00 (GMT+05:45') });
  const id = made.stdout.trim();
  expect(await listed()).toMatchObject([
    {
      id,
      name: 'News',
      kind: 'ask',
      maker: { kind: 'operator' },
      target: { chat: { chat: '42' } },
    },
  ]);
  expect((await run('disable', 'news')).stderr).toContain('disabled');
  expect((await run('enable', id)).stderr).toContain('Asia/Kathmandu');
  expect((await run('run', id)).code).toBe(0);
  expect((await run('remove', id)).code).toBe(0);
  expect(await listed()).toEqual([]);
});

test('a job that waits because jobs are switched off says so', async () => {
  await home.writeConfig({ version: 1, cron: { enabled: false } });
  const made = await run('add', 'Celebrate', '--every', '1h');
  expect(made.stderr).toContain('waits until cron.enabled is true');
  await run('remove', made.stdout.trim());
  await home.writeConfig({ version: 1 });
});

test('a job at the end of the last year that can be typed is made in every time zone', async () => {
  const at = ['--at', '9999-12-31 23:59', '--timezone', 'America/New_York'];
  const made = await run('add', 'Celebrate', ...at);
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('10000-01-01 04:59:00') });
  await run('remove', made.stdout.trim());
});

test('what makes or names no job is refused with what to do', async () => {
  const cases = [
    [['add', 'x', '--at', 'tomorrow'], 'is not a clear time', 2],
    [['add', 'x', '--every', '1h', '--to', 'nowhere'], 'channel:chat', 2],
    [['add', 'note', '--workflow', '--every', '1h'], 'There is no workflow "note"', 2],
    [['remove', 'j123'], 'There is no job "j123"', 6],
  ] as const;
  const results = await Promise.all(cases.map(([args]) => run(...args)));
  for (const [index, [, words, code]] of cases.entries()) {
    expect(results[index]).toMatchObject({ code, stderr: expect.stringContaining(words) });
  }
});
