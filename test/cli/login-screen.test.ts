// A login on the terminal: drawn in one place where a person sits there, line after line elsewhere.

import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { LoginStep } from '../../src/channels/channel.ts';
import { createLoginScreen } from '../../src/cli/login/log-in.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { countPrintedQr, readPrintedQr } from '../support/qr-reader.ts';

const WORDS = { scan: 'Point the phone at this.', type: 'Or type this there:' };
const LONG = `https://wa.me/settings/linked_devices#2@${'aB3+/'.repeat(50)}=,1`;

/** What stands on a terminal, as far as the screen moves in it: up, to the left, clear below. */
function createTube(columns: number, rows: number) {
  const clock = createMovableClock();
  const printed: string[] = [];
  let lines: string[] = [''];
  let row = 0;
  const put = (text: string) => {
    for (const part of text.split(/(\n|\r|\p{Cc}\[\d+[AJ])/u)) {
      const up = /^\p{Cc}\[(\d+)A$/u.exec(part)?.[1];
      if (up !== undefined) row = Math.max(0, row - Number(up));
      else if (part.endsWith('[0J')) lines = [...lines.slice(0, row), ''];
      else if (part === '\n') row += 1;
      else if (part !== '\r') lines[row] = `${lines[row] ?? ''}${part}`;
    }
  };
  const output = Object.assign(new EventEmitter(), {
    columns,
    rows,
    write: (text: string) => {
      put(text);
      return true;
    },
  });
  const say = (line: string) => void printed.push(line);
  const terminal: Terminal = {
    env: {},
    home: homeOf({ NANOBOT_HOME: '/nowhere' }),
    clock,
    input: process.stdin,
    output: output as unknown as NodeJS.WriteStream,
    print: say,
    note: say,
    tell: say,
    printJson: () => undefined,
    typed: (text) => text,
    style: (_style, text) => text,
    interactive: true,
  };
  return {
    terminal,
    clock,
    /** What a person sees now. */
    seen: () => lines.map((line) => line.trimEnd()).join('\n'),
    printed,
    resize(wide: number, high: number) {
      Object.assign(output, { columns: wide, rows: high });
      output.emit('resize');
    },
  };
}

const inAMinute = (tube: ReturnType<typeof createTube>) => tube.clock.now() + 60_000;

function showQr(tube: ReturnType<typeof createTube>, qr: string): LoginStep {
  return { kind: 'show_qr', qr, expiresAt: inAMinute(tube) };
}

test('a new code takes the place of the old one, and nothing is left behind', () => {
  const tube = createTube(100, 50);
  const screen = createLoginScreen(tube.terminal, WORDS);
  screen.show({ kind: 'progress', text: 'Connecting.' });
  expect(tube.seen()).toContain('Connecting.');
  screen.show(showQr(tube, LONG));
  expect(readPrintedQr(tube.seen())).toBe(LONG);
  expect(tube.seen()).not.toContain('Connecting.');
  screen.show({ kind: 'progress', text: 'No code to type today.' });
  screen.show(showQr(tube, `${LONG}2`));
  expect(tube.seen()).toContain('No code to type today.');
  expect(readPrintedQr(tube.seen())).toBe(`${LONG}2`);
  expect(countPrintedQr(tube.seen())).toBe(1);
  screen[Symbol.dispose]();
  expect(tube.seen().trim()).toBe('');
  expect(tube.clock.pending).toBe(0);
});

test('the code to type stands beside the QR where there is room, else below', () => {
  const code: LoginStep = { kind: 'show_code', code: 'K7QX4M2P', phoneNumber: '491511234567' };
  const wide = createTube(120, 50);
  const beside = createLoginScreen(wide.terminal, WORDS);
  beside.show(showQr(wide, LONG));
  beside.show(code);
  const line = wide
    .seen()
    .split('\n')
    .find((one) => one.includes('K7QX-4M2P'));
  expect(line).toMatch(/[█▀▄].*K7QX-4M2P/u);
  expect(readPrintedQr(wide.seen())).toBe(LONG);
  const narrow = createTube(80, 50);
  const below = createLoginScreen(narrow.terminal, WORDS);
  below.show(showQr(narrow, LONG));
  below.show(code);
  expect(narrow.seen()).toMatch(/\n {2}K7QX-4M2P/u);
  expect(readPrintedQr(narrow.seen())).toBe(LONG);
  beside[Symbol.dispose]();
  below[Symbol.dispose]();
});

test('a window too small says so, and shows the code once it was made larger', () => {
  const tube = createTube(80, 24);
  const screen = createLoginScreen(tube.terminal, WORDS);
  screen.show(showQr(tube, LONG));
  expect(countPrintedQr(tube.seen())).toBe(0);
  expect(tube.seen()).toMatch(/needs \d+ columns and \d+ rows/);
  tube.resize(80, 60);
  expect(readPrintedQr(tube.seen())).toBe(LONG);
  screen[Symbol.dispose]();
});

test('a code that expired is taken away, what was said stays', async () => {
  const tube = createTube(100, 50);
  const screen = createLoginScreen(tube.terminal, WORDS);
  screen.show(showQr(tube, LONG));
  screen.show({ kind: 'progress', text: 'Waiting for the phone.' });
  expect(readPrintedQr(tube.seen())).toBe(LONG);
  await tube.clock.advance(60_001);
  expect(countPrintedQr(tube.seen())).toBe(0);
  expect(tube.seen()).toContain('Waiting for the phone.');
  screen[Symbol.dispose]();
});

test('in a pipe every code is printed anew, without colours', () => {
  const tube = createTube(0, 0);
  const screen = createLoginScreen({ ...tube.terminal, interactive: false }, WORDS);
  screen.show(showQr(tube, LONG));
  screen.show(showQr(tube, `${LONG}2`));
  screen.show({ kind: 'show_code', code: 'K7QX4M2P', phoneNumber: '491511234567' });
  const text = tube.printed.join('\n');
  expect(countPrintedQr(text)).toBe(2);
  expect(readPrintedQr(text)).toBe(`${LONG}2`);
  expect(text).toContain('K7QX-4M2P');
  expect(text).not.toContain('\u001B');
});
