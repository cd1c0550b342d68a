// A QR code that is shown can be read, in whatever way it is shown.

import { describe, expect, test } from 'vitest';
import {
  type QrMatrix,
  qrMatrix,
  qrSvg,
  qrTerminalLines,
  qrTerminalSize,
} from '../../src/lib/qr-code.ts';
import { readPrintedQr, readQr, readSvgQr } from '../support/qr-reader.ts';

const LINK = `https://wa.me/settings/linked_devices#2@${'aB3+/'.repeat(50)}=,1`;
const TEXTS = ['7', 'short', LINK, 'x'.repeat(600), 'Grüße, 你好 🎉'];

const modulesOf = ({ size, isDark }: QrMatrix) =>
  Array.from({ length: size }, (_, row) =>
    Array.from({ length: size }, (_, column) => isDark(row, column)),
  );

describe.each(TEXTS)('the code of %s', (text) => {
  const matrix = qrMatrix(text);

  test('holds the text', () => {
    expect(readQr(modulesOf(matrix))).toBe(text);
  });

  test.each([true, false])('can be read from a terminal, in colours: %s', (colors) => {
    const lines = qrTerminalLines(matrix, { colors });
    expect(readPrintedQr(`before\n${lines.join('\n')}\nafter`)).toBe(text);
    expect(lines).toHaveLength(qrTerminalSize(matrix).rows);
  });

  test('can be read from the picture', () => {
    expect(readSvgQr(qrSvg(matrix))).toBe(text);
  });
});

test('four light modules stand around it, so that a camera finds it', () => {
  const matrix = qrMatrix('quiet');
  const lines = qrTerminalLines(matrix, { colors: false });
  const { columns } = qrTerminalSize(matrix);
  expect(lines.every((line) => line.length === columns)).toBe(true);
  expect(lines.slice(0, 2)).toEqual(['█'.repeat(columns), '█'.repeat(columns)]);
  expect(lines.every((line) => line.startsWith('████') && line.endsWith('████'))).toBe(true);
});

test('its colours are its own, so that a light terminal does not turn it inside out', () => {
  const lines = qrTerminalLines(qrMatrix('x'), { colors: true });
  const isColored = (line: string) =>
    line.startsWith('\u001B[38;5;16;48;5;231m') && line.endsWith('\u001B[0m');
  expect(lines.every(isColored)).toBe(true);
});

test('a text that no code can hold is refused', () => {
  expect(() => qrMatrix('x'.repeat(3000))).toThrow();
});
