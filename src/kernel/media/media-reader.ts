// Reads stored contents for models: documents as text, images scaled and stripped of metadata.
// Derived files are cached beside the original; concurrency is bounded by memory.

import { hash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metadata, Sharp } from 'sharp';
import { z } from 'zod';
import { createLanes, createReaderMemory, type ReaderMemory } from '../../lib/async.ts';
import { writeAtomic } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import { type MediaId, mediaId } from '../message/ids.ts';
import { contentTypeOf, HEAD_BYTES } from './files.ts';
import {
  type DocumentReading,
  type ImageReading,
  MediaError,
  type MediaReader,
  type MediaStore,
} from './media.ts';

/** `reading`: how many readings of the content ended with the process. */
type DerivedKind = 'image' | 'text' | 'reading';

/** Loaded with the first document. */
const extraction = () => import('./extract/extract.ts');

const MAX_BYTES = 500_000_000;
/** The folder is cleaned after this many new files. */
const LOOK_EVERY = 50;
const NAME = /^[0-9a-f]{64}\.(?:image|text|reading)$/;

/** `folder` is created with the first derived file. */
function createDerivedFiles(folder: string, clock: Clock) {
  let kept = 0;
  const pathOf = (id: MediaId, kind: DerivedKind) => join(folder, `${id}.${kind}`);

  async function sweep(unusedMs: number): Promise<void> {
    const before = clock.now() - unusedMs;
    let total = 0;
    for (const { path, sizeBytes, usedAt } of await newestFirst(folder)) {
      total += sizeBytes;
      if (usedAt < before || total > MAX_BYTES) await unlink(path).catch(() => undefined);
    }
  }

  return {
    async read(id: MediaId, kind: DerivedKind): Promise<Uint8Array | undefined> {
      const path = pathOf(id, kind);
      const content = await readFile(path).catch(() => undefined);
      const now = clock.now() / 1000;
      if (content !== undefined) await utimes(path, now, now).catch(() => undefined);
      return content;
    },
    /** On a full disk the next reader repeats the work; there is no other effect. */
    async keep(id: MediaId, kind: DerivedKind, content: Uint8Array): Promise<void> {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeAtomic(pathOf(id, kind), content);
        const now = clock.now() / 1000;
        await utimes(pathOf(id, kind), now, now);
        kept += 1;
        if (kept % LOOK_EVERY === 0) await sweep(Number.POSITIVE_INFINITY);
      } catch {
        return;
      }
    },
    drop: (id: MediaId, kind: DerivedKind) =>
      rm(pathOf(id, kind), { force: true }).catch(() => undefined),
    sweep,
  };
}

async function newestFirst(folder: string) {
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name));
  const files = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const info = await stat(path).catch(() => undefined);
      return { path, sizeBytes: info?.size ?? 0, usedAt: info?.mtimeMs ?? 0 };
    }),
  );
  return files.toSorted((a, b) => b.usedAt - a.usedAt);
}

// An image as models accept it: upright, its longest side bounded, a plain JPEG or PNG without the
// camera's data about place and owner. The library is loaded with the first image: a start must not
// wait for it, and a gateway without images must not pay for it.

/** Vendors scale larger ones down, at our cost. */
const MAX_SIDE_PIXELS = 1568;
/** More than a photo has; it would have to be unpacked. */
const MAX_INPUT_PIXELS = 100_000_000;
/** Bytes per pixel that opening uses, measured; a format without a figure counts as `MOST`. */
const STREAMED: Readonly<Record<string, number>> = { jpeg: 0.7, png: 3 };
const WHOLE: Readonly<Record<string, number>> = { jpeg: 4, png: 5, webp: 5, gif: 6, tiff: 6 };
const MOST = 20;
const MAX_INPUT_BYTES = 60_000_000;
/** Vendors count the 5 MB in base64. */
const MAX_OUTPUT_BYTES = 3_750_000;
/** Drawings and screenshots stay lossless while that is small. */
const MAX_PNG_BYTES = 1_000_000;
const QUALITIES = [85, 60, 35] as const;
/** Formats that are opened, by content; an SVG is text, and may reference files. */
const OPENED = new Set(['jpeg', 'png', 'webp', 'gif', 'heif', 'tiff']);
const LOADERS = ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif', 'Tiff'].map(
  (format) => `VipsForeignLoad${format}`,
);
/** Types that are opened; HEIC is not, because its codec is patented. */
const OPENED_TYPES = /^image\/(?:jpeg|png|apng|webp|gif|avif|tiff)$/;
const DRAWN = new Set(['png', 'gif']);

const TOO_LARGE = t`it is larger than an image may be`;
const DAMAGED = t`it is damaged`;
const NO_IMAGE = t`this image cannot be opened; send it as JPEG or PNG`;
const NAMES: Readonly<Record<string, string>> = { 'x-icon': 'ICO', heif: 'HEIC' };

/** `maxBytes`: what opening it may use. */
async function modelImage(
  content: Uint8Array,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<ImageReading> {
  if (content.length > MAX_INPUT_BYTES) return { kind: 'unreadable', reason: TOO_LARGE };
  try {
    return await opened(content, maxBytes);
  } catch (error) {
    const isTooLarge = error instanceof Error && /pixel limit/i.test(error.message);
    return { kind: 'unreadable', reason: isTooLarge ? TOO_LARGE : await closedReason(content) };
  }
}

async function opened(content: Uint8Array, maxBytes: number): Promise<ImageReading> {
  const sharp = await openers();
  const options = { limitInputPixels: MAX_INPUT_PIXELS, failOn: 'error', pages: 1 } as const;
  const metadata = await sharp(content, options).metadata();
  const { format = '' } = metadata;
  if (!OPENED.has(format)) return { kind: 'unreadable', reason: await closedReason(content) };
  if (content.length + unpackedBytes(metadata) > maxBytes) {
    return { kind: 'unreadable', reason: (await extraction()).tooLargeHere(maxBytes) };
  }
  const upright = sharp(content, options)
    .autoOrient()
    .resize({
      width: MAX_SIDE_PIXELS,
      height: MAX_SIDE_PIXELS,
      fit: 'inside',
      withoutEnlargement: true,
    })
    .toColourspace('srgb');
  return (DRAWN.has(format) ? await asPng(upright) : undefined) ?? asJpeg(upright);
}

/** Why it is not opened, by its type. */
async function closedReason(content: Uint8Array): Promise<string> {
  const type = await contentTypeOf(content.subarray(0, HEAD_BYTES));
  if (OPENED_TYPES.test(type)) return DAMAGED;
  const name = /^image\/(.+)$/.exec(type)?.[1];
  if (name === undefined) return NO_IMAGE;
  const label = NAMES[name] ?? name.replace(/^(?:x-|vnd\.)/, '').toUpperCase();
  return t`${label} images cannot be opened; send it as JPEG or PNG`;
}

function unpackedBytes({ format, width, height, depth, isProgressive }: Metadata): number {
  const known = isProgressive ? WHOLE[format] : (STREAMED[format] ?? WHOLE[format]);
  return width * height * (known ?? MOST) * (depth === 'uchar' ? 1 : 2);
}

/** Enables only the loaders of permitted formats: the others never see untrusted content. */
async function openers() {
  const { default: sharp } = await import('sharp');
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: LOADERS });
  sharp.cache(false);
  // One thread is fast enough and leaves the machine to others.
  sharp.concurrency(1);
  return sharp;
}

async function asPng(image: Sharp): Promise<ImageReading | undefined> {
  const content = await image.clone().png().toBuffer();
  if (content.length > MAX_PNG_BYTES) return undefined;
  return { kind: 'image', mimeType: 'image/png', content };
}

async function asJpeg(image: Sharp): Promise<ImageReading> {
  for (const quality of QUALITIES) {
    const content = await image
      .clone()
      .flatten({ background: '#fff' })
      .jpeg({ quality })
      .toBuffer();
    if (content.length <= MAX_OUTPUT_BYTES)
      return { kind: 'image', mimeType: 'image/jpeg', content };
  }
  return { kind: 'unreadable', reason: TOO_LARGE };
}

// Reads stored contents for models: each once at a time, as many in parallel as the memory allows,
// with the result cached beside the original. The start of a reading is recorded first, so that a
// content that ends the process is not read again after every restart.

type MediaReaderOptions = {
  readonly store: Pick<MediaStore, 'read' | 'stat'>;
  /** For derived files; created on demand. */
  readonly folder: string;
  readonly clock: Clock;
  /** Shared with other readers; default: its own. */
  readonly memory?: ReaderMemory;
};

/** A process may end during a reading for unrelated reasons, except if memory is short. */
const MAX_ENDED_READINGS = 1;
const ENDED = t`the gateway ended unexpectedly while reading it, so it is not read again; a smaller or simpler file can be sent instead`;
const GONE = t`it is no longer stored`;
const UNAVAILABLE = t`the storage of files cannot be reached now`;
/** JPEG starts with FF D8 (ITU T.81, annex B). */
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

  /** Reads within the memory limit; does not read what ended the process before. */
  async function guarded<Reading>(
    id: MediaId,
    signal: AbortSignal,
    read: () => Promise<Reading>,
  ): Promise<Reading | Unreadable> {
    using _permit = await memory.acquire(signal);
    const ended = (await derived.read(id, 'reading'))?.length ?? 0;
    if (ended > maxEnded) return { kind: 'unreadable', reason: ENDED };
    await derived.keep(id, 'reading', new Uint8Array(ended + 1));
    return await read().finally(() => derived.drop(id, 'reading'));
  }

  const extracted = (id: MediaId, content: Uint8Array, signal: AbortSignal) =>
    guarded(id, signal, async () =>
      (await extraction()).extract(content, { clock, signal, memory }),
    );

  const inTurn = <Reading>(id: MediaId, signal: AbortSignal, read: () => Promise<Reading>) =>
    orAborted(lanes.run(id, read), signal);

  function documentIn(content: Uint8Array, signal: AbortSignal): Promise<DocumentReading> {
    const id = mediaId(hash('sha256', content));
    return inTurn(id, signal, () => extracted(id, content, signal));
  }

  async function document(id: MediaId, signal: AbortSignal): Promise<DocumentReading> {
    // Checks the store even if a text is cached: a deleted content is not read any more.
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
    document: (id, signal) => inTurn(id, signal, () => document(id, signal)).catch(unavailable),
    documentIn,
    image: (id) => lanes.run(id, () => image(id)).catch(unavailable),
    sweep: (unusedMs) => derived.sweep(unusedMs),
  };
}

function unavailable(error: unknown): Unreadable {
  if (!(error instanceof MediaError) || error.code !== 'media_unavailable') throw error;
  return { kind: 'unreadable', reason: UNAVAILABLE };
}

/** Undefined if nothing usable is cached. */
function readingIn(kept: Uint8Array | undefined): DocumentReading | undefined {
  if (kept === undefined) return undefined;
  try {
    return text.parse(JSON.parse(new TextDecoder().decode(kept)));
  } catch {
    return undefined;
  }
}
