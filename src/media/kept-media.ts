// Looks at what a media store keeps, without being its owner: nothing is written, deleted or counted as
// used, so that it may be done beside a running gateway.

import { readFile } from 'node:fs/promises';
import type { MediaId } from '../core/ids.ts';
import { contentTypeOf, HEAD_BYTES } from './content-type.ts';
import { mediaPath } from './files.ts';
import type { MediaStore } from './media.ts';

/** `folder`: of the store. */
export function createKeptMedia(folder: string): Pick<MediaStore, 'read' | 'stat'> {
  async function read(id: MediaId): Promise<Uint8Array | undefined> {
    const path = mediaPath(folder, id);
    return path === undefined ? undefined : readFile(path).catch(() => undefined);
  }
  return {
    read,
    async stat(id) {
      const content = await read(id);
      if (content === undefined) return undefined;
      const mimeType = await contentTypeOf(content.subarray(0, HEAD_BYTES));
      return { id, sizeBytes: content.length, mimeType };
    },
  };
}
