// A media store that keeps everything in memory, for tests of one channel without the gateway.

import { createHash } from 'node:crypto';
import { contentTypeOf } from '../../src/kernel/media/files.ts';
import { MediaError, type MediaStore } from '../../src/kernel/media/media.ts';
import { createMediaReader } from '../../src/kernel/media/media-reader.ts';
import { type MediaId, mediaId } from '../../src/kernel/message/ids.ts';
import { type Clock, systemClock } from '../../src/lib/time/clock.ts';

/** Reads what a store holds; `folder` is made when something is kept first. */
export const createTestReader = (store: MediaStore, folder: string) =>
  createMediaReader({ store, folder, clock: systemClock });

export function createMemoryMedia(clock: Clock): MediaStore {
  const kept = new Map<MediaId, { readonly content: Uint8Array; usedAt: number }>();
  return {
    async put(content, { maxBytes }) {
      const whole =
        content instanceof Uint8Array ? content : Buffer.concat(await Array.fromAsync(content));
      if (whole.length > maxBytes) throw new MediaError('media_too_large', 'too large');
      const id = mediaId(createHash('sha256').update(whole).digest('hex'));
      kept.set(id, { content: whole, usedAt: clock.now() });
      return { id, sizeBytes: whole.length, mimeType: await contentTypeOf(whole) };
    },
    async read(id) {
      const found = kept.get(id);
      if (found !== undefined) found.usedAt = clock.now();
      return found?.content;
    },
    async stat(id) {
      const found = kept.get(id);
      if (found === undefined) return undefined;
      const { content } = found;
      return { id, sizeBytes: content.length, mimeType: await contentTypeOf(content) };
    },
    async remove(id) {
      kept.delete(id);
      return true;
    },
    trim: async () => undefined,
    async sweep(unusedMs) {
      const old = [...kept].filter(([, { usedAt }]) => usedAt < clock.now() - unusedMs);
      for (const [id] of old) kept.delete(id);
      return old.reduce((sum, [, { content }]) => sum + content.length, 0);
    },
  };
}
