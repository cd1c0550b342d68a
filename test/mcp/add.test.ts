// Adding and removing a tool server by the command line, with the real program: connected before it is saved.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandWords } from '../../src/lib/text/command-line.ts';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';
import { startMcpOAuthServer } from '../support/mcp-oauth-server.ts';

const CHILD = join(import.meta.dirname, '../support/mcp-server-child.ts');

test('a server is saved once it listed its tools or asked for a login, and removed', async () => {
  await using hosted = await startMcpOAuthServer();
  await using home = await temporaryHome();
  const run = (...args: string[]) => runNanobot(['mcp', ...args], { home: home.path });
  const saved = async () =>
    JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8')).mcpServers ?? {};

  const unnamed = await run('add');
  expect(unnamed.stderr).toMatch(/has no value.* mcp add <name>$/m);
  const empty = await run('add', 'calc');
  expect(empty.stderr).toMatch(/has no value.* mcp add <name> -- <command>$/m);

  const broken = await run('add', 'broken', '--', '/no/such/program');
  expect(broken.code).toBe(1);
  expect(broken.stderr).toMatch(/broken is not connected: .*not found/);
  expect(await saved()).toEqual({});

  const added = await run('add', 'calc', '--env', 'KEY=a b', '--', process.execPath, CHILD);
  expect(added.stdout).toContain('calc is connected and has 8 tools.');
  expect(added.stdout).toContain('env: Its environment.');
  expect(added.stdout).not.toMatch(/[\u200B\u202E]/);
  const calc = { command: process.execPath, args: [CHILD], env: { KEY: 'a b' } };
  expect(await saved()).toEqual({ calc: { ...calc, trust: 'ask_once' } });
  expect((await run('add', 'calc', '--url', hosted.url)).stderr).toContain('already a server');

  const login = await run('add', 'notes', '--url', hosted.url, '--trust', 'always_ask');
  expect(login.stdout).toContain('notes answers and asks for a login.');
  expect(login.stdout).toContain('nanobot mcp login notes');
  expect((await saved()).notes).toEqual({ url: hosted.url, trust: 'always_ask' });
  expect((await run('remove', 'notes')).stdout).toContain('Removed the tool server notes.');
  expect((await run('remove', 'notes')).stderr).toContain('There is no tool server notes.');
  expect(Object.keys(await saved())).toEqual(['calc']);
});

test('a typed command is split at spaces, quotes keep them', () => {
  expect(commandWords(`npx -y "a b" 'c "d"' e\\ f "g\\"h" i'j k'`)).toEqual([
    ...['npx', '-y', 'a b', 'c "d"', 'e f', 'g"h', 'ij k'],
  ]);
  expect(commandWords('  ')).toEqual([]);
  expect(commandWords('say "never closed')).toBeUndefined();
});
