// docs/subsystems.md, docs/weaknesses.md and docs/origins.md name files and tests: each is there. So is
// each command that the documentation names.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runCli } from '../src/cli/cli.ts';
import { createTerminal } from '../src/cli/terminal.ts';
import { COMMAND_LIST } from '../src/features/command-list.ts';
import { COMMAND_GROUPS } from '../src/kernel/commands/commands.ts';

const ROOT = join(import.meta.dirname, '..');
const PATH = /`((?:src|test|bench)\/[^`*]+)`/g;
const WEAKNESSES = 70;

function rowsOf(path: string): readonly string[] {
  return readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .filter(
      (line) => line.startsWith('| ') && !/^\| (?:The original|No\.|Rule|Asked for|---)/.test(line),
    );
}

test.each([
  ['docs/subsystems.md', 100],
  ['docs/weaknesses.md', WEAKNESSES],
  ['docs/origins.md', 60],
])('%s names only what is there, and in each row a file and a test', (document, atLeast) => {
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

test('every weakness has its row, and each row all its columns', () => {
  const rows = rowsOf('docs/weaknesses.md').map((row) => row.split(' | '));
  const numbers = rows.map(([first = '']) => Number(first.replace('| ', '')));
  expect(numbers).toEqual(Array.from({ length: WEAKNESSES }, (_, index) => index + 1));
  for (const row of rows) expect(row.length, row[0]).toBe(5);
});

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const listed = (help: string) =>
  [...help.matchAll(/^ {2}([a-z]+)(?:\|[a-z]+)?(?= |$)/gm)].map(([, name = '']) => name);

async function commandsOf(...group: readonly string[]): Promise<readonly string[]> {
  const written: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  await runCli([...group, '--help'], createTerminal(process)).finally(() => spy.mockRestore());
  return listed(written.join(''));
}

test('each command of the command line that the documentation names is there', async () => {
  const documents = ['README.md', ...readdirSync(join(ROOT, 'docs'), { recursive: true })]
    .map(String)
    .filter((path) => path.endsWith('.md'))
    .map((path) => read(path === 'README.md' ? path : join('docs', path)));
  const named = documents.flatMap((text) =>
    [...text.matchAll(/`nanobot ([a-z]+)((?: [a-z]+(?:\\?\|[a-z]+)*)?)/g)].map(
      ([, command = '', rest = '']) => [command, rest.trim()] as const,
    ),
  );
  const [, table = ''] = /## The command line([\s\S]*?)\n## /.exec(read('README.md')) ?? [];
  const rows = table.split('\n').flatMap((line) => {
    const cell = /^\| (`.*?`) \|/.exec(line.replaceAll('\\|', '/'))?.[1] ?? '';
    return [...cell.matchAll(/`([a-z]+)((?: [a-z]+(?:\/[a-z]+)*)?)/g)].map(
      ([, command = '', rest = '']) => [command, rest.trim()] as const,
    );
  });
  expect(rows.length).toBeGreaterThan(25);
  const commands = await commandsOf();
  const missing: string[] = [];
  const groups = new Map<string, readonly string[]>();
  const [row = ''] = rowsOf('docs/subsystems.md').filter((line) => line.startsWith('| `Commands`'));
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

test('the README names the commands of a chat, each that /help lists', () => {
  const [, paragraph = ''] =
    /(`\/help` lists the commands[\s\S]*?)\n\n/.exec(read('README.md')) ?? [];
  const named = new Set([...paragraph.matchAll(/\/([a-z]+)/g)].map(([, name = '']) => name));
  const known = COMMAND_LIST.map(({ name }) => name);
  const inHelp = COMMAND_GROUPS.flatMap(([, names]) => names);
  expect(inHelp.filter((name) => !named.has(name))).toEqual([]);
  const paths = ['docs', 'operations', 'subagents', 'workflows'];
  expect([...named].filter((name) => !known.includes(name) && !paths.includes(name))).toEqual([]);
});
