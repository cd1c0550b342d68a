// Every command that the documentation shows with its output prints that output: the `console` blocks of a page are
// run in order by the real program, in a copy of one home in which the gateway has run once. How to write them: docs/develop/README.md.

import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';
import { blocksOf, PAGES, patternOf } from './pages.ts';

/** The last line of what the gateway prints when it has started. */
const STARTED = 'Press Ctrl+C to stop.';

type Step = { readonly command: string; readonly output: string };

const stepsOf = (block: string): readonly Step[] =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...output] = part.split('\n');
      return { command, output: output.join('\n').trim() };
    });

/** The arguments of `nanobot`, whichever way the page calls it. */
function argumentsOf(command: string): readonly string[] {
  const plain = command
    .replace(/^npm ci && /, '')
    .replace(/^npm start$/, 'nanobot gateway --port 0');
  const called = /^(?:npm run (?:-s )?nanobot --|nanobot) ?(.*)$/.exec(plain)?.[1];
  if (called === undefined) throw new Error(`only nanobot can be run: ${command}`);
  return [...called.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, word]) => double ?? single ?? word ?? '',
  );
}

/** The home, the port and the name of the program as the pages write them. */
const asShown = (printed: string, home: string) =>
  printed
    .replaceAll(home, '~/.nanobot')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:18790')
    .replace(/npm run (?:-s )?nanobot --/g, 'nanobot')
    .replace(/ +$/gm, '')
    .trim();

async function print(command: string, home: string): Promise<string> {
  const args = argumentsOf(command);
  const { stdout, stderr } = await runNanobot(args, {
    home,
    // A variable would take precedence over what is set in the file.
    env: args[0] === 'config' ? {} : { NANOBOT__agents__defaults__model: 'demo/demo' },
    onOutput(printed, interrupt) {
      if (args[0] === 'gateway' && printed.includes(STARTED)) interrupt();
    },
  });
  const [started = stdout] = stdout.split(
    new RegExp(`(?<=${STARTED.replaceAll(/[.+]/g, '\\$&')})`),
  );
  return asShown(args[0] === 'gateway' ? started : `${stdout}${stderr}`, home);
}

const pages = PAGES.map((page) => ({
  path: page.path,
  steps: blocksOf(page, 'console').flatMap(stepsOf),
})).filter(({ steps }) => steps.length > 0);

const started = await temporaryHome();
const startedHome = join(started.path, '.nanobot');
beforeAll(() => print('npm start', startedHome));
afterAll(() => started[Symbol.asyncDispose]());

describe.each(pages)('$path', ({ steps }) => {
  it('shows what its commands print', async () => {
    await using folder = await temporaryHome();
    const home = join(folder.path, '.nanobot');
    const [first] = steps;
    if (first?.command.endsWith('npm start') !== true)
      await cp(startedHome, home, { recursive: true });
    for (const { command, output } of steps) {
      expect(await print(command, home), command).toMatch(patternOf(asShown(output, '~/.nanobot')));
    }
  });
});

it('finds commands to run', () => {
  expect(pages.flatMap(({ steps }) => steps).length).toBeGreaterThan(20);
});
