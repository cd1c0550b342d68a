// Files in quoted-printable come out as they went in, however the mail was cut on its way.

import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { quotedPrintableDecoder } from '../../../src/lib/mail/parse-mail.ts';

it.each([
  ['escapes and soft breaks', 'Gr=C3=BC=\r\n=C3=9Fe\r\nx=20\r\n', 'Grüße\r\nx \r\n'],
  ['blanks that were added on the way', 'a \t\r\nb  =  \r\nc \t', 'a\r\nb  c'],
  ['what is no escape', 'a =ZZ = b =', 'a =ZZ = b '],
])('decodes %s', async (_, encoded, text) => {
  for (const size of [1, 3, 1000]) {
    const pieces = encoded.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const chunks = Readable.from(pieces.map((piece) => Buffer.from(piece)));
    expect((await buffer(chunks.pipe(quotedPrintableDecoder()))).toString()).toBe(text);
  }
});

it('decodes a line without end piece by piece', async () => {
  const chunks = Readable.from(
    Array.from({ length: 20 }, () => Buffer.from('=41b'.repeat(16_384))),
  );
  const decoded = await buffer(chunks.pipe(quotedPrintableDecoder()));
  expect(decoded.equals(Buffer.from('Ab'.repeat(20 * 16_384)))).toBe(true);
});
