// An image as models take it: upright, its longest side bounded, a plain JPEG or PNG without what the
// camera noted of place and owner. The library is loaded with the first image: a start must not wait
// for it, and a gateway that sees no image must not pay for it.

import type { Metadata, Sharp } from 'sharp';
import { contentTypeOf, HEAD_BYTES } from './content-type.ts';
import { tooLargeHere } from './extract/problem.ts';
import type { ImageReading } from './reader.ts';

/** Larger ones are made smaller by the vendors, at our cost. */
const MAX_SIDE_PIXELS = 1568;
/** More would have to be unpacked than a photo has. */
const MAX_INPUT_PIXELS = 100_000_000;
/** Bytes that opening takes for each pixel, measured; a format without a figure takes `MOST`. */
const STREAMED: Readonly<Record<string, number>> = { jpeg: 0.7, png: 3 };
const WHOLE: Readonly<Record<string, number>> = { jpeg: 4, png: 5, webp: 5, gif: 6, tiff: 6 };
const MOST = 20;
const MAX_INPUT_BYTES = 60_000_000;
/** Vendors count the 5 MB in base64. */
const MAX_OUTPUT_BYTES = 3_750_000;
/** Drawings and screens stay without loss while that is cheap. */
const MAX_PNG_BYTES = 1_000_000;
const QUALITIES = [85, 60, 35] as const;
/** What is opened, by its content; an SVG is text, and may name files. */
const OPENED = new Set(['jpeg', 'png', 'webp', 'gif', 'heif', 'tiff']);
const LOADERS = ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif', 'Tiff'].map(
  (format) => `VipsForeignLoad${format}`,
);
/** Types of what is opened; HEIC is not, for its codec is patented. */
const OPENED_TYPES = /^image\/(?:jpeg|png|apng|webp|gif|avif|tiff)$/;
const DRAWN = new Set(['png', 'gif']);

const TOO_LARGE = 'it is larger than an image may be';
const DAMAGED = 'it is damaged';
const NO_IMAGE = 'it is no image that can be opened; as JPEG or PNG it can';
const NAMES: Readonly<Record<string, string>> = { 'x-icon': 'ICO', heif: 'HEIC' };

/** `maxBytes`: what opening it may take. */
export async function modelImage(
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
    return { kind: 'unreadable', reason: tooLargeHere(maxBytes) };
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

/** Why it is not opened, by what it is. */
async function closedReason(content: Uint8Array): Promise<string> {
  const type = await contentTypeOf(content.subarray(0, HEAD_BYTES));
  if (OPENED_TYPES.test(type)) return DAMAGED;
  const name = /^image\/(.+)$/.exec(type)?.[1];
  if (name === undefined) return NO_IMAGE;
  const label = NAMES[name] ?? name.replace(/^(?:x-|vnd\.)/, '').toUpperCase();
  return `pictures of the format ${label} cannot be opened; saved as JPEG or PNG it can be seen`;
}

function unpackedBytes({ format, width, height, depth, isProgressive }: Metadata): number {
  const known = isProgressive ? WHOLE[format] : (STREAMED[format] ?? WHOLE[format]);
  return width * height * (known ?? MOST) * (depth === 'uchar' ? 1 : 2);
}

/** Only the loaders of what is opened: the others never see what strangers send. */
async function openers() {
  const { default: sharp } = await import('sharp');
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: LOADERS });
  sharp.cache(false);
  // One thread is fast enough, and the machine belongs to others too.
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
