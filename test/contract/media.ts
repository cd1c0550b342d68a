// What every media store promises: a content by its hash, once, whole or not at all.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { MediaStore } from '../../src/kernel/media/media.ts';
import { mediaId } from '../../src/kernel/message/ids.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';

export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const LIMITS = { maxBytes: 1_000_000 };
const DAY_MS = 86_400_000;
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex');

async function* pieces(...parts: readonly (string | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield Buffer.from(part);
  }
}

export function mediaContract(name: string, open: (clock: MovableClock) => Promise<MediaStore>) {
  describe(`the media store ${name}`, () => {
    it('gives a content back by its hash, whole or in pieces', async () => {
      const store = await open(createMovableClock());
      const whole = await store.put(Buffer.from('one two'), LIMITS);
      const inPieces = await store.put(pieces('one ', 'two'), LIMITS);
      expect(whole).toEqual({
        id: sha256(Buffer.from('one two')),
        sizeBytes: 7,
        mimeType: 'text/plain',
      });
      expect(inPieces).toEqual(whole);
      expect(Buffer.from((await store.read(whole.id)) ?? []).toString()).toBe('one two');
      expect(await store.stat(whole.id)).toEqual(whole);
    });

    it('keeps an empty content too', async () => {
      const store = await open(createMovableClock());
      const { id, sizeBytes } = await store.put(Buffer.alloc(0), LIMITS);
      expect(sizeBytes).toBe(0);
      expect(await store.read(id)).toHaveLength(0);
    });

    it.each([
      ['a picture', PNG, 'image/png'],
      ['an SVG with a script', Buffer.from('<svg><script>alert(1)</script></svg>'), 'text/plain'],
      ['XML that is an SVG', Buffer.from('<?xml version="1.0"?><svg/>'), 'text/plain'],
      ['a web page', Buffer.from('<!doctype html><p>hello'), 'text/plain'],
      ['bytes that tell nothing', Buffer.from([0, 1, 2, 3, 255]), 'application/octet-stream'],
      ['a PDF', Buffer.from('%PDF-1.7\n%âãÏÓ\n'), 'application/pdf'],
    ])('finds out that %s is what it is', async (_what, content, mimeType) => {
      const store = await open(createMovableClock());
      expect(await store.put(content, LIMITS)).toMatchObject({ mimeType });
    });

    it('refuses what is too large and keeps nothing of it', async () => {
      const store = await open(createMovableClock());
      const put = store.put(pieces('12345', '67890'), { maxBytes: 9 });
      await expect(put).rejects.toMatchObject({ code: 'media_too_large' });
      expect(await store.read(mediaId(sha256(Buffer.from('1234567890'))))).toBeUndefined();
    });

    it('keeps nothing of a content whose source fails, and passes the failure on', async () => {
      const store = await open(createMovableClock());
      const put = store.put(pieces('half', new RangeError('cut off')), LIMITS);
      await expect(put).rejects.toThrow(RangeError);
      expect(await store.read(mediaId(sha256(Buffer.from('half'))))).toBeUndefined();
    });

    it('does not know what was never there, also by a name that is a path', async () => {
      const store = await open(createMovableClock());
      expect(await store.read(mediaId('0'.repeat(64)))).toBeUndefined();
      expect(await store.read(mediaId('../../etc/passwd'))).toBeUndefined();
      expect(await store.stat(mediaId(''))).toBeUndefined();
    });

    it('deletes a content that is not wanted any more at once', async () => {
      const store = await open(createMovableClock());
      const { id } = await store.put(Buffer.from('one'), LIMITS);
      const other = await store.put(Buffer.from('two'), LIMITS);
      expect([await store.remove(id), await store.remove(id)]).toEqual([true, true]);
      expect(await store.read(id)).toBeUndefined();
      expect(await store.read(other.id)).toBeDefined();
    });

    it('deletes what nobody used for long and says how much that was', async () => {
      const clock = createMovableClock();
      const store = await open(clock);
      const old = await store.put(Buffer.from('old'), LIMITS);
      const read = await store.put(Buffer.from('read again'), LIMITS);
      await clock.advance(20 * DAY_MS);
      await store.read(read.id);
      const young = await store.put(Buffer.from('young'), LIMITS);
      await clock.advance(15 * DAY_MS);
      expect(await store.sweep(30 * DAY_MS)).toBe(3);
      expect(await store.read(old.id)).toBeUndefined();
      expect(await store.read(read.id)).toBeDefined();
      expect(await store.read(young.id)).toBeDefined();
    });
  });
}
