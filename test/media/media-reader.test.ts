// What models get of stored contents, over the real store in a folder.

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { beforeEach, describe, expect, it } from 'vitest';
import type { MediaReader, MediaStore } from '../../src/kernel/media/media.ts';
import { createMediaReader } from '../../src/kernel/media/media-reader.ts';
import { mediaId } from '../../src/kernel/message/ids.ts';
import { createReaderMemory } from '../../src/lib/async.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { bytesOf, pdf, xlsx } from './documents.ts';

const LIMITS = { maxBytes: 100_000_000 };
const DAY_MS = 86_400_000;

let folder = '';
let clock: MovableClock;
let store: MediaStore;
let reader: MediaReader;
beforeEach(async () => {
  folder = await temporaryFolder();
  clock = createMovableClock();
  store = createMemoryMedia(clock);
  reader = createMediaReader({ store, folder: join(folder, 'derived'), clock });
});
const signal = () => new AbortController().signal;
const put = async (content: Uint8Array) => (await store.put(content, LIMITS)).id;
const kept = () => readdir(join(folder, 'derived'));

async function shown(content: Uint8Array) {
  const reading = await reader.image(await put(content));
  if (reading.kind === 'unreadable') throw new Error(reading.reason);
  const { width, height, ...rest } = await sharp(reading.content).metadata();
  return { ...reading, width, height, metadata: rest };
}

async function reasonOf(content: Uint8Array) {
  const reading = await reader.image(await put(content));
  return reading.kind === 'unreadable' ? reading.reason : 'shown';
}

const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#c00' } });

/** A PNG that claims these sides and holds next to nothing. */
function pngOf(width: number, height: number): Uint8Array {
  const chunk = (type: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const mark = Buffer.from('89504e470d0a1a0a', 'hex');
  const data = deflateSync(Buffer.alloc(1000));
  return Buffer.concat([
    mark,
    chunk('IHDR', head),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('an image for a model', () => {
  it('is upright, bounded, and without place and owner', async () => {
    const photo = await plain(3000, 2000)
      .withExif({
        IFD0: { Artist: 'Eve Owner', Orientation: '6' },
        IFD3: { GPSLatitude: '52/1 30/1 0/1', GPSLatitudeRef: 'N' },
      })
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const image = await shown(photo);
    expect(image).toMatchObject({ mimeType: 'image/jpeg', width: 1045, height: 1568 });
    expect(image.metadata.exif).toBeUndefined();
    expect(image.metadata.orientation).toBeUndefined();
    expect(Buffer.from(image.content).includes('Eve Owner')).toBe(false);
  });

  it('stays a small drawing without loss, and is never made larger', async () => {
    const image = await shown(await plain(40, 30).png().toBuffer());
    expect(image).toMatchObject({ mimeType: 'image/png', width: 40, height: 30 });
  });

  it('is the first picture of a moving one', async () => {
    const frames = ['#f00', '#0f0'].map((background) => ({
      create: { width: 8, height: 8, channels: 4 as const, background },
    }));
    const inputs = await Promise.all(frames.map((frame) => sharp(frame).png().toBuffer()));
    const moving = await sharp(inputs, { join: { animated: true } })
      .gif()
      .toBuffer();
    const image = await shown(moving);
    expect(image).toMatchObject({ width: 8, height: 8 });
    const { dominant } = await sharp(image.content).stats();
    expect(dominant.r).toBeGreaterThan(200);
  });

  it.each(['jpeg', 'png', 'webp', 'gif', 'avif', 'tiff'] as const)(
    'is shown of %s',
    async (format) => {
      const image = await shown(await plain(30, 20).toFormat(format).toBuffer());
      expect(image).toMatchObject({ width: 30, height: 20 });
    },
  );

  it('is refused where it would fill the memory or is none', async () => {
    expect(await reasonOf(pngOf(40_000, 40_000))).toBe('it is larger than an image may be');
    const none = 'this image cannot be opened; send it as JPEG or PNG';
    expect(await reasonOf(pngOf(400, 400))).toBe('it is damaged');
    expect(await reasonOf(bytesOf('not an image'))).toBe(none);
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd"/></svg>';
    expect(await reasonOf(bytesOf(svg))).toBe(none);
  });
});

describe('an image of a format that is not opened', () => {
  const heic = Buffer.concat([
    Buffer.from([0, 0, 0, 24]),
    Buffer.from('ftypheic\0\0\0\0mif1heic', 'latin1'),
    Buffer.alloc(200),
  ]);
  const bmp = Buffer.concat([Buffer.from('BM', 'latin1'), Buffer.alloc(100, 1)]);
  const ico = Buffer.concat([Buffer.from([0, 0, 1, 0, 1, 0, 16, 16, 0, 0]), Buffer.alloc(100)]);

  it.each([
    ['HEIC', heic],
    ['BMP', bmp],
    ['ICO', ico],
  ])('is not called damaged: %s', async (name, content) => {
    expect(await reasonOf(content)).toBe(`${name} images cannot be opened; send it as JPEG or PNG`);
  });
});

describe('a process with little memory', () => {
  const small = () =>
    createMediaReader({
      ...{ store, clock, folder: join(folder, 'derived') },
      memory: createReaderMemory(256 * 1_048_576),
    });
  const tooLarge = expect.stringContaining('reading it takes more than the 67 MB of memory');

  it('opens no picture that takes more, and those of the same size that do not', async () => {
    const whole = await put(await plain(8000, 6000).jpeg({ progressive: true }).toBuffer());
    expect(await small().image(whole)).toEqual({ kind: 'unreadable', reason: tooLarge });
    const streamed = await put(await plain(8000, 6000).jpeg().toBuffer());
    expect(await small().image(streamed)).toMatchObject({ kind: 'image' });
  });

  it('reads no document that takes more, by its size or by what it unpacks to', async () => {
    const size = await put(Buffer.alloc(40_000_000, 'words '));
    expect(await small().document(size, signal())).toMatchObject({ reason: tooLarge });
    const rows = Array.from({ length: 200_000 }, (_, row) => [row, row * 7, 'a cell']);
    const unpacked = await put(xlsx({ Data: rows }));
    expect(await small().document(unpacked, signal())).toMatchObject({ reason: tooLarge });
  });

  it('reads nothing again that a process ended with, and with much memory once more', async () => {
    const id = await put(pdf(['Innocent.']));
    const noted = join(folder, 'derived', `${id}.reading`);
    await mkdir(join(folder, 'derived'));
    await writeFile(noted, new Uint8Array(1));
    const ended = expect.stringContaining('the gateway ended unexpectedly while reading it');
    expect(await small().document(id, signal())).toMatchObject({ reason: ended });
    const large = createMediaReader({
      ...{ store, clock, folder: join(folder, 'derived') },
      memory: createReaderMemory(4096 * 1_048_576),
    });
    await writeFile(noted, new Uint8Array(2));
    expect(await large.document(id, signal())).toMatchObject({ reason: ended });
    await writeFile(noted, new Uint8Array(1));
    expect(await large.document(id, signal())).toMatchObject({ kind: 'text' });
    expect(await kept()).toEqual([`${id}.text`]);
  });
});

describe('what was read once', () => {
  it('is kept beside the original, and goes when nobody wants it', async () => {
    const image = await put(await plain(2000, 10).jpeg().toBuffer());
    const document = await put(pdf(['Kept.']));
    const first = await reader.image(image);
    expect(await reader.document(document, signal())).toMatchObject({ kind: 'text' });
    expect((await kept()).toSorted()).toEqual([`${document}.text`, `${image}.image`].toSorted());
    expect(await reader.image(image)).toEqual(first);
    await writeFile(
      join(folder, 'derived', `${document}.text`),
      JSON.stringify({ kind: 'text', sections: [{ title: '', text: 'as kept' }], isCut: false }),
    );
    const again = await reader.document(document, signal());
    expect(again).toMatchObject({ sections: [{ text: 'as kept' }] });
    await writeFile(join(folder, 'derived', `${document}.text`), '{"kind":');
    const repaired = await reader.document(document, signal());
    expect(repaired).toMatchObject({ sections: [{ text: 'Kept.' }] });
    await clock.advance(31 * DAY_MS);
    await reader.sweep(30 * DAY_MS);
    expect(await kept()).toEqual([]);
  });

  it('is not read any more when the original is gone', async () => {
    const id = await put(pdf(['Gone.']));
    await reader.document(id, signal());
    await clock.advance(31 * DAY_MS);
    await store.sweep(30 * DAY_MS);
    const gone = { kind: 'unreadable', reason: 'it is no longer stored' };
    expect(await reader.document(id, signal())).toEqual(gone);
    expect(await reader.image(id)).toEqual(gone);
    expect(await reader.image(mediaId('../../etc/passwd'))).toEqual(gone);
  });
});
