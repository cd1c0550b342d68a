// What a terminal sends and what it is sent.

import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readServerEvents } from '../../../src/channels/terminal/attached.ts';
import {
  completePart,
  KeyFilter,
  LINE_BREAK_MARK,
  renderTerminal,
  unseenPart,
} from '../../../src/channels/terminal/screen.ts';

const KEYS = 'a\x1b[200~b\r\nc\nd\x1b[201~e\r\x1b\rf';
const EDITED = `ab${LINE_BREAK_MARK}c${LINE_BREAK_MARK}de\r${LINE_BREAK_MARK}f`;

async function typed(chunks: readonly string[]): Promise<string> {
  const filter = new KeyFilter(process.stdin);
  return text(Readable.from(chunks.map((chunk) => Buffer.from(chunk))).pipe(filter));
}

describe('keys', () => {
  test('a paste and Alt+Enter break lines instead of sending them', async () => {
    expect(await typed([KEYS])).toBe(EDITED);
  });

  test('a paste may arrive in pieces cut inside its marks', async () => {
    const cuts = [KEYS.indexOf('[200~') + 2, KEYS.indexOf('[201~') + 2];
    for (const cut of cuts) {
      expect(await typed([KEYS.slice(0, cut), KEYS.slice(cut)])).toBe(EDITED);
    }
  });

  test('Esc alone is passed on at once', async () => {
    expect(await typed(['\x1b'])).toBe('\x1b');
  });
});

describe('an answer that grows', () => {
  test('what stands never includes an open paragraph or an open code block', () => {
    expect(completePart('one\n\ntwo')).toBe('one\n\n');
    expect(completePart('```\na\n\nb')).toBe('');
    expect(completePart('```\na\n\nb\n```\n\nc')).toBe('```\na\n\nb\n```\n\n');
  });

  test('what stands only ever grows', () => {
    const lines = fc.array(fc.constantFrom('a', '', '```', 'b c'), { maxLength: 12 });
    fc.assert(
      fc.property(lines, fc.nat(40), (parts, cut) => {
        const whole = parts.join('\n');
        const early = completePart(whole.slice(0, cut));
        expect(whole.startsWith(early)).toBe(true);
      }),
    );
  });

  test.each([
    ['nothing stands yet', [], 'all', 'all'],
    ['all of it stands', ['one', 'two'], 'one\n\ntwo', ''],
    ['its beginning stands', ['one'], 'one\n\ntwo', 'two'],
    ['an earlier text stands above', ['let me see', 'one'], 'one\n\ntwo', 'two'],
    ['something else stands', ['wrong'], 'right', 'right'],
  ])('in the end only the rest is shown: %s', (_name, pieces, markdown, rest) => {
    expect(unseenPart(pieces, markdown)).toBe(rest);
  });
});

describe('Markdown', () => {
  test('control sequences in an answer never reach the terminal', () => {
    const hostile = 'a\x1b[2Jb\x07c\u009b31md\r';
    for (const hasColors of [true, false]) {
      expect(renderTerminal(hostile, hasColors)).toBe('a[2Jbc31md');
    }
  });

  test('without colours it stays as written', () => {
    expect(renderTerminal('**bold** `code`', false)).toBe('**bold** `code`');
  });
});

test('server-sent events survive any cut, comments and broken data', async () => {
  const stream =
    ': hello\n\nid: 1\ndata: {"a":"ä€😀"}\n\ndata: {broken\n\ndata: {"b":\ndata: 2}\r\n\r\n';
  const bytes = Buffer.from(stream);
  for (let size = 1; size < 9; size += 1) {
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    const events = await Array.fromAsync(readServerEvents(pieces()));
    expect(events).toEqual([{ a: 'ä€😀' }, { b: 2 }]);
  }
});
