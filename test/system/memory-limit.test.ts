// Documents and pictures that are read within the memory limit of a container: a file that does not
// fit is refused in words, and the gateway goes on.

import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { docx, pdf, xlsx } from '../media/documents.ts';
import { say } from '../support/llm-server.ts';
import { makeMemoryLimit } from '../support/memory-limit.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const ALICE = 700;
const MIB = 1_048_576;
const TEST_MS = 280_000;
const SILENT_MS = 30_000;

const probe = makeMemoryLimit(64 * MIB);
await probe?.[Symbol.asyncDispose]();
if (probe === undefined) {
  console.log('memory limit tests skipped: no control group can be made here');
}

let sheet: Buffer | undefined;

/** About ten megabytes packed, and far more as cells. */
function largeSheet(): Buffer {
  const rows = () =>
    Array.from({ length: 60_000 }, (_, row) => [
      row,
      ...Array.from({ length: 12 }, () => randomBytes(9).toString('base64url')),
    ]);
  sheet ??= Buffer.from(xlsx({ Data: rows() }));
  return sheet;
}

/** The same cells in another file: a zip may end with a comment. */
function another(file: Buffer): Buffer {
  const copy = Buffer.concat([file, Buffer.from('2')]);
  copy.writeUInt16LE(1, file.length - 2);
  return copy;
}

/** 96 megapixels of which a progressive JPEG has to be unpacked as a whole. */
const largePicture = () =>
  sharp({ create: { width: 12_000, height: 8000, channels: 3, background: '#c09' } })
    .jpeg({ progressive: true })
    .toBuffer();

async function limitedWorld(mebibytes: number) {
  await using opened = new AsyncDisposableStack();
  const memory = makeMemoryLimit(mebibytes * MIB);
  if (memory === undefined) throw new Error('no control group can be made here');
  opened.use(memory);
  const world = opened.use(
    await startTelegramWorld({
      respond: () => say('Seen.'),
      channel: { allowFrom: ['*'] },
      config: { agents: { defaults: { model: 'openai/gpt-5' } } },
      memory,
    }),
  );
  const { telegram, model, home } = world;
  const stack = opened.move();
  return {
    ...{ telegram, model, home, memory, gateway: world.gateway },
    restart: world.restart,
    /** Left, or as soon as everyone has an answer. */
    async answers(chats: readonly number[]) {
      const left = world.gateway.exited.then((code) => `the gateway left with ${code}`);
      const texts = chats.map(async (chat) => (await telegram.nextMessage(chat, TEST_MS)).text);
      return Promise.race([left, Promise.all(texts)]);
    },
    send(chat: number, name: string, content: Uint8Array) {
      const extra = { file_name: name };
      telegram.sendFile(chat, { field: 'document', content: Buffer.from(content), extra });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

describe.skipIf(probe === undefined)('a gateway with a memory limit', () => {
  it(
    'of 512 MB outlives two large spreadsheets at once',
    async () => {
      await using world = await limitedWorld(512);
      const chats = [ALICE, ALICE + 1];
      world.send(ALICE, 'large.xlsx', largeSheet());
      world.send(ALICE + 1, 'large.xlsx', another(largeSheet()));
      expect(await world.answers(chats)).toEqual(['Seen.', 'Seen.']);
      expect(world.memory.kills()).toBe(0);
      const handled = /\[sheet Data\]|was not read: reading it takes (?:more than|too long)/;
      const asked = world.model.requests.map(({ lastUserText }) => handled.test(lastUserText));
      expect(asked).toEqual([true, true]);
    },
    TEST_MS,
  );

  it(
    'of 256 MB answers the health check while it refuses six large pictures',
    async () => {
      await using world = await limitedWorld(256);
      const chats = Array.from({ length: 6 }, (_, index) => ALICE + index);
      const picture = await largePicture();
      // Each a file of its own: what comes after the end of a picture is not part of it.
      for (const chat of chats) {
        world.send(chat, 'large.jpg', Buffer.concat([picture, Buffer.of(chat - ALICE)]));
      }
      const statuses: number[] = [];
      const over = new AbortController();
      const watching = (async () => {
        while (!over.signal.aborted) {
          const signal = AbortSignal.timeout(SILENT_MS);
          statuses.push((await fetch(`${world.gateway.address}/healthz`, { signal })).status);
        }
      })();
      expect(await world.answers(chats)).toEqual(chats.map(() => 'Seen.'));
      over.abort();
      await watching;
      expect([...new Set(statuses)]).toEqual([200]);
      expect(JSON.stringify(world.model.requests.at(-1)?.body)).toMatch(
        /cannot be shown, reading it takes more than the \d+ MB of memory/,
      );
    },
    TEST_MS,
  );

  it(
    'of 256 MB says why a large spreadsheet is not read, and reads ordinary documents and photos after it',
    async () => {
      await using world = await limitedWorld(256);
      world.send(ALICE, 'large.xlsx', largeSheet());
      expect(await world.answers([ALICE])).toEqual(['Seen.']);
      expect(world.model.requests.at(-1)?.lastUserText.slice(0, 500)).toMatch(
        /was not read: reading it takes more than the \d+ MB of memory that one file may take here/,
      );
      const photo = await sharp({
        create: { width: 4000, height: 3000, channels: 3, background: '#c00' },
      })
        .jpeg()
        .toBuffer();
      world.send(ALICE + 1, 'a.pdf', pdf(['A page.']));
      world.send(ALICE + 2, 'a.docx', docx(['A paragraph.']));
      world.send(ALICE + 3, 'a.xlsx', xlsx({ Sheet: [['A cell', 1]] }));
      world.send(ALICE + 4, 'a.jpg', photo);
      expect(await world.answers([1, 2, 3, 4].map((index) => ALICE + index))).toEqual(
        Array.from({ length: 4 }, () => 'Seen.'),
      );
      const asked = world.model.requests.map(({ lastUserText }) => lastUserText).join('\n');
      for (const words of ['A page.', 'A paragraph.', 'A cell | 1']) expect(asked).toContain(words);
      expect(world.model.requests.flatMap(({ images }) => images)).toHaveLength(1);
    },
    TEST_MS,
  );

  it(
    'does not read a file again that ended the process',
    async () => {
      await using world = await limitedWorld(512);
      world.send(ALICE, 'large.xlsx', largeSheet());
      const derived = join(world.home.path, 'media', 'derived');
      const isReading = async () =>
        (await readdir(derived).catch(() => [])).some((name) => name.endsWith('.reading'));
      await expect.poll(isReading, { timeout: SILENT_MS, interval: 5 }).toBe(true);
      await world.restart();
      expect((await world.telegram.nextMessage(ALICE, TEST_MS)).text).toBe('Seen.');
      expect(world.model.requests.at(-1)?.lastUserText).toContain(
        'was not read: the gateway ended unexpectedly while reading it',
      );
    },
    TEST_MS,
  );
});
