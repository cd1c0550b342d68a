// Reads stored contents for models: each once at a time, as many side by side as the memory allows, and
// what was found is kept beside the original. Before a content is read this is noted, so that one that
// ends the process is not read again and again after every restart.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { createLanes } from '../../lib/async/lanes.ts';
import { createReaderMemory, type ReaderMemory } from '../../lib/async/permits.ts';
import { orAborted } from '../../lib/time/aborted.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type MediaId, mediaId } from '../message/ids.ts';
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
  /** Shared with other readers; its own where it is left out. */
  readonly memory?: ReaderMemory;
};

/** A process may end during a reading that has nothing to do with it, except where memory is short. */
const MAX_ENDED_READINGS = 1;
const ENDED =
  'the gateway ended unexpectedly while reading it, so it is not read again; a smaller or simpler file can be sent instead';
const GONE = 'it is no longer stored';
/** JPEG begins with FF D8 (ITU T.81, annex B). */
const JPEG_START = 0xff;

type Unreadable = Extract<DocumentReading, { readonly kind: 'unreadable' }>;

const text = z.object({
  kind: z.literal('text'),
  sections: z.array(z.object({ title: z.string(), text: z.string() })),
  isCut: z.boolean(),
});

export function createMediaReader({
  store,
  folder,
  clock,
  memory = createReaderMemory(),
}: MediaReaderOptions): MediaReader {
  const derived = createDerivedFiles(folder, clock);
  const lanes = createLanes();
  const never = new AbortController().signal;
  const maxEnded = memory.isTight ? 0 : MAX_ENDED_READINGS;

  /** Reads within the memory; nothing is read that ended the process before. */
  async function guarded<Reading>(
    id: MediaId,
    signal: AbortSignal,
    read: () => Promise<Reading>,
  ): Promise<Reading | Unreadable> {
    const permit = await memory.acquire(signal);
    try {
      const ended = (await derived.read(id, 'reading'))?.length ?? 0;
      if (ended > maxEnded) return { kind: 'unreadable', reason: ENDED };
      await derived.keep(id, 'reading', new Uint8Array(ended + 1));
      return await read().finally(() => derived.drop(id, 'reading'));
    } finally {
      permit[Symbol.dispose]();
    }
  }

  const extracted = (id: MediaId, content: Uint8Array, signal: AbortSignal) =>
    guarded(id, signal, () => extract(content, { clock, signal, memory }));

  const inTurn = <Reading>(id: MediaId, signal: AbortSignal, read: () => Promise<Reading>) =>
    orAborted(lanes.run(id, read), signal);

  function documentIn(content: Uint8Array, signal: AbortSignal): Promise<DocumentReading> {
    const id = mediaId(createHash('sha256').update(content).digest('hex'));
    return inTurn(id, signal, () => extracted(id, content, signal));
  }

  async function document(id: MediaId, signal: AbortSignal): Promise<DocumentReading> {
    // Asked of the store also where a text was kept: what was deleted is not read any more.
    if ((await store.stat(id)) === undefined) return { kind: 'unreadable', reason: GONE };
    const kept = readingIn(await derived.read(id, 'text'));
    if (kept !== undefined) return kept;
    const content = await store.read(id);
    if (content === undefined) return { kind: 'unreadable', reason: GONE };
    const reading = await extracted(id, content, signal);
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
    return guarded(id, never, async (): Promise<ImageReading> => {
      const content = await store.read(id);
      if (content === undefined) return { kind: 'unreadable', reason: GONE };
      const reading = await modelImage(content, memory.bytes);
      if (reading.kind === 'image') await derived.keep(id, 'image', reading.content);
      return reading;
    });
  }

  return {
    document: (id, signal) => inTurn(id, signal, () => document(id, signal)),
    documentIn,
    image: (id) => lanes.run(id, () => image(id)),
    sweep: (unusedMs) => derived.sweep(unusedMs),
  };
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
