// The documentation names files, tests and commands that exist: the rows of the appendix and of the origins, every file in
// the pages for developers, every command of the command line and of a chat.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runCli } from '../src/cli/cli.ts';
import { createTerminal } from '../src/cli/terminal.ts';
import { COMMAND_LIST } from '../src/features/command-list.ts';
import { COMMAND_GROUPS } from '../src/kernel/commands/commands.ts';
import { PAGES } from './docs/pages.ts';

const ROOT = join(import.meta.dirname, '..');
const PATH = /`((?:src|test|bench)\/[^`*]+)`/g;
const WEAKNESSES = 70;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function rowsOf(path: string): readonly string[] {
  return read(path)
    .split('\n')
    .filter(
      (line) =>
        line.startsWith('| ') &&
        !/^\| (?:The original|No\.|Rule|Asked for|What you see|---)/.test(line),
    );
}

test.each([
  ['docs/develop/appendix.md', 170],
  ['docs/develop/origins.md', 60],
])('%s names only what is there, and in each row code and a test', (document, atLeast) => {
  const rows = rowsOf(document);
  expect(rows.length).toBeGreaterThanOrEqual(atLeast);
  for (const row of rows) {
    const paths = [...row.matchAll(PATH)].map(([, path = '']) => path);
    expect(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      row,
    ).toEqual([]);
    expect(
      paths.some((path) => path.startsWith('test/')),
      row,
    ).toBe(true);
    expect(
      paths.some((path) => !path.startsWith('test/')),
      row,
    ).toBe(true);
  }
});

test('every file of the repository that a page names is there', () => {
  const pages = PAGES.filter(({ path }) => !path.startsWith('docs/adr/'));
  const named = pages.flatMap(({ text }) =>
    [...text.matchAll(/`((?:src|test|bench|scripts|config|docs)\/[\w./-]+)`/g)].map(
      ([, file = '']) => file,
    ),
  );
  // docs/develop/adding-a-feature.md builds this one, and a test of its own does what it says.
  const own = (path: string) => path.startsWith('src/features/shopping/');
  expect(named.filter((path) => !own(path) && !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every module that the feature of the guide imports is there', () => {
  const imported = [
    ...read('docs/develop/adding-a-feature.md').matchAll(/from '\.\.\/\.\.\/([^']+)'/g),
  ].map(([, path = '']) => join('src', path));
  expect(imported.length).toBeGreaterThan(4);
  expect(imported.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every weakness has its row, and each row all its columns', () => {
  const rows = rowsOf('docs/develop/appendix.md')
    .filter((row) => /^\| \d+ \|/.test(row))
    .map((row) => row.split(' | '));
  const numbers = rows.map(([first = '']) => Number(first.replace('| ', '')));
  expect(numbers).toEqual(Array.from({ length: WEAKNESSES }, (_, index) => index + 1));
  for (const row of rows) expect(row.length, row[0]).toBe(5);
});

const listed = (help: string) =>
  [...help.matchAll(/^ {2}([a-z-]+)(?:\|[a-z]+)?(?= |$)/gm)].map(([, name = '']) => name);

async function commandsOf(...group: readonly string[]): Promise<readonly string[]> {
  const written: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  const argv = group.length === 0 ? ['help', 'all'] : [...group, '--help'];
  await runCli(argv, createTerminal(process)).finally(() => spy.mockRestore());
  return listed(written.join(''));
}

test('each command of the command line that the documentation names is there', async () => {
  const named = PAGES.flatMap(({ text }) =>
    [...text.matchAll(/`nanobot ([a-z][a-z-]*)((?: [a-z]+(?:\\?\|[a-z]+)*)?)/g)].map(
      ([, command = '', rest = '']) => [command, rest.trim()] as const,
    ),
  );
  const [, table = ''] =
    /## The command line([\s\S]*?)\n## /.exec(read('docs/operate/commands.md')) ?? [];
  const rows = table.split('\n').flatMap((line) => {
    const cell = /^\| (`.*?`) \|/.exec(line.replaceAll('\\|', '/'))?.[1] ?? '';
    return [...cell.matchAll(/`([a-z-]+)((?: [a-z]+(?:\/[a-z]+)*)?)/g)].map(
      ([, command = '', rest = '']) => [command, rest.trim()] as const,
    );
  });
  expect(rows.length).toBeGreaterThan(25);
  const commands = await commandsOf();
  const missing: string[] = [];
  const groups = new Map<string, readonly string[]>();
  const [row = ''] = rowsOf('docs/develop/appendix.md').filter((line) =>
    line.startsWith('| `Commands`'),
  );
  const ours = [...(row.split(' | ')[2] ?? '').matchAll(/`([a-z]+)`/g)].map(
    ([, command = '']) => [command, ''] as const,
  );
  expect(ours.length).toBeGreaterThan(4);
  for (const [command, rest] of [...named, ...rows, ...ours]) {
    if (!commands.includes(command)) missing.push(command);
    if (!groups.has(command)) groups.set(command, await commandsOf(command));
    const inGroup = groups.get(command) ?? [];
    const isGroup = inGroup.includes('help');
    for (const name of isGroup && rest !== '' ? rest.split(/\\?[|/]/) : []) {
      if (!inGroup.includes(name)) missing.push(`${command} ${name}`);
    }
  }
  expect(missing).toEqual([]);
});

test('the page of commands has each command of a chat that /help lists, and no other', () => {
  const [, section = ''] =
    /## Commands in a chat([\s\S]*?)\n## /.exec(read('docs/operate/commands.md')) ?? [];
  const cells = section.split('\n').flatMap((line) => /^\| ([^|]*) \|/.exec(line)?.[1] ?? []);
  const named = new Set(
    cells.flatMap((cell) => [...cell.matchAll(/`\/([a-z]+)/g)].map(([, name = '']) => name)),
  );
  const inHelp = COMMAND_GROUPS.flatMap(([, names]) => names);
  const known = COMMAND_LIST.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(inHelp.filter((name) => !named.has(name))).toEqual([]);
  expect([...named].filter((name) => !known.includes(name))).toEqual([]);
});
