// Reads stored contents for models: each once at a time, few side by side, and what was found is kept
// beside the original.

import { z } from 'zod';
import type { MediaId } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import { createPermits } from '../lib/permits.ts';
import { createDerivedFiles } from './derived-files.ts';
import { extract } from './extract/extract.ts';
import type { MediaStore } from './media.ts';
import { modelImage } from './model-image.ts';
import type { DocumentReading, ImageReading, MediaReader } from './reader.ts';

export type MediaReaderOptions = {
  readonly store: Pick<MediaStore, 'read' | 'stat'>;
  /** For what is made of the contents; made when needed. */
  readonly folder: string;
  readonly clock: Clock;
};

/** Each takes a thread and up to a few hundred megabytes. */
const MAX_DOCUMENTS_AT_ONCE = 2;
const MAX_IMAGES_AT_ONCE = 2;
const GONE = 'it is no longer stored';
/** JPEG begins with FF D8 (ITU T.81, annex B). */
const JPEG_START = 0xff;

const text = z.object({
  kind: z.literal('text'),
  sections: z.array(z.object({ title: z.string(), text: z.string() })),
  isCut: z.boolean(),
});

export function createMediaReader({ store, folder, clock }: MediaReaderOptions): MediaReader {
  const derived = createDerivedFiles(folder, clock);
  const documents = createPermits(MAX_DOCUMENTS_AT_ONCE);
  const images = createPermits(MAX_IMAGES_AT_ONCE);
  const never = new AbortController().signal;

  async function documentIn(content: Uint8Array, signal: AbortSignal): Promise<DocumentReading> {
    const permit = await documents.acquire(signal);
    try {
      return await extract(content, { clock, signal });
    } finally {
      permit[Symbol.dispose]();
    }
  }

  async function document(id: MediaId, signal: AbortSignal): Promise<DocumentReading> {
    // Asked of the store also where a text was kept: what was deleted is not read any more.
    if ((await store.stat(id)) === undefined) return { kind: 'unreadable', reason: GONE };
    const kept = readingIn(await derived.read(id, 'text'));
    if (kept !== undefined) return kept;
    const content = await store.read(id);
    if (content === undefined) return { kind: 'unreadable', reason: GONE };
    const reading = await documentIn(content, signal);
    if (reading.kind === 'text') {
      await derived.keep(id, 'text', new TextEncoder().encode(JSON.stringify(reading)));
    }
    return reading;
  }

  async function image(id: MediaId): Promise<ImageReading> {
    if ((await store.stat(id)) === undefined) return { kind: 'unreadable', reason: GONE };
    const kept = await derived.read(id, 'image');
    if (kept !== undefined) {
      const mimeType = kept[0] === JPEG_START ? 'image/jpeg' : 'image/png';
      return { kind: 'image', mimeType, content: kept };
    }
    const permit = await images.acquire(never);
    try {
      const content = await store.read(id);
      if (content === undefined) return { kind: 'unreadable', reason: GONE };
      const reading = await modelImage(content);
      if (reading.kind === 'image') await derived.keep(id, 'image', reading.content);
      return reading;
    } finally {
      permit[Symbol.dispose]();
    }
  }

  return { document, documentIn, image, sweep: (unusedMs) => derived.sweep(unusedMs) };
}

/** Undefined where nothing was kept, or nothing that can be used. */
function readingIn(kept: Uint8Array | undefined): DocumentReading | undefined {
  if (kept === undefined) return undefined;
  try {
    return text.parse(JSON.parse(new TextDecoder().decode(kept)));
  } catch {
    return undefined;
  }
}
