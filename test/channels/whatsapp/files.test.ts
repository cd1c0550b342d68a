// Files by WhatsApp: what people send, fetched and decrypted, and what goes out.

import type { proto } from '@whiskeysockets/baileys';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import type { Attachment } from '../../../src/kernel/message/attachment.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import { fileOf } from '../../contract/channel-files.ts';
import { PNG } from '../../contract/media.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { startElsewhere } from '../../support/redirector.ts';
import type { Contact } from '../../support/whatsapp-server/contract.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { type LiveRig, startLiveRig } from './live-rig.ts';
import { UNPACED } from './outbox-rig.ts';
import { fileMessage, filesSeenBy } from './seen-files.ts';

const LARGE = Buffer.alloc(200_003, 'film');
const NO_PREVIEW = { jpegThumbnail: '' } as const;

const server = await trustedWhatsAppServer();
let rig: LiveRig;
let anna: Contact;
const quiet = quietConsole();

afterAll(() => quiet[Symbol.dispose]());
beforeEach(async () => {
  rig = await startLiveRig(server, { allowFrom: ['*'], pacing: UNPACED });
  anna = await server.contact(rig.phone, { name: 'Anna' });
});
afterEach(() => rig[Symbol.asyncDispose]());

async function received(message: proto.IMessage) {
  await anna.writes('', { message });
  return rig.host.until(({ entries }) => entries.at(-1)?.message);
}

async function fetched(attachment: Attachment | undefined): Promise<Buffer> {
  const { content } = attachment ?? {};
  if (content?.kind !== 'remote') throw new Error('nothing to fetch');
  const pieces = rig.channel.attachments?.fetch(content.ref, new AbortController().signal);
  return Buffer.concat(await Array.fromAsync(pieces ?? []));
}

describe('a file that a person sends', () => {
  test.each([
    ['a photo', { image: LARGE, ...NO_PREVIEW, caption: 'look' }, { kind: 'image' }, 'look'],
    [
      'a video',
      { video: LARGE, ...NO_PREVIEW, seconds: 3 },
      { kind: 'video', durationMs: 3000 },
      '',
    ],
    ['a video message', { video: LARGE, ...NO_PREVIEW, ptv: true }, { kind: 'video_note' }, ''],
    ['a song', { audio: LARGE, mimetype: 'audio/mpeg', seconds: 4 }, { kind: 'audio' }, ''],
    ['a voice message', { audio: LARGE, ptt: true, seconds: 4 }, { kind: 'voice' }, ''],
    [
      'a document',
      { document: LARGE, mimetype: 'application/pdf', fileName: 'a.pdf' },
      { kind: 'document', name: 'a.pdf', mimeType: 'application/pdf', sizeBytes: LARGE.length },
      '',
    ],
    ['a sticker', { sticker: LARGE }, { kind: 'sticker' }, ''],
  ] as const)('as %s comes whole', async (_name, content, expected, text) => {
    const message = await received(await fileMessage(server, content as never));
    expect(message.text).toBe(text);
    expect(message.attachments).toMatchObject([expected]);
    expect((await fetched(message.attachments?.[0])).equals(LARGE)).toBe(true);
  });

  test('of an album tells that more of it may come', async () => {
    const picture = await fileMessage(server, { image: PNG, ...NO_PREVIEW });
    const parentMessageKey = { id: 'ALBUM', remoteJid: 'x@s.whatsapp.net', fromMe: false };
    const message = await received({
      ...picture,
      messageContextInfo: { messageAssociation: { associationType: 1, parentMessageKey } },
    });
    expect(message.mayContinue).toBe(true);
    expect((await fetched(message.attachments?.[0])).equals(PNG)).toBe(true);
  });

  test('inside of others, such as one to be seen once, comes as well', async () => {
    const inner = await fileMessage(server, { image: PNG, ...NO_PREVIEW });
    const message = await received({ viewOnceMessageV2: { message: inner } });
    expect((await fetched(message.attachments?.[0])).equals(PNG)).toBe(true);
  });

  test('that is not kept any more is given up for good', async () => {
    const message = await received(await fileMessage(server, { image: PNG, ...NO_PREVIEW }));
    server.forgetMedia();
    await expect(fetched(message.attachments?.[0])).rejects.toMatchObject({
      isFinal: true,
      reason: 'WhatsApp no longer has it; ask for it to be sent again',
    });
  });

  test('that only the phone keeps is put there again by it, and asked for once', async () => {
    const message = await received(await fileMessage(server, { document: LARGE, mimetype: 'a/b' }));
    server.forgetMedia('keeps');
    for (let time = 0; time < 2; time += 1) {
      expect((await fetched(message.attachments?.[0])).equals(LARGE)).toBe(true);
    }
    server.forgetMedia('keeps');
    await expect(fetched(message.attachments?.[0])).rejects.toMatchObject({ isFinal: true });
  });

  test('that the phone does not hand over in time is given up', async () => {
    const clock = createMovableClock(Date.now());
    await using other = await startLiveRig(server, { allowFrom: ['*'] }, { clock });
    const ben = await server.contact(other.phone, { name: 'Ben' });
    await ben.writes('', { message: await fileMessage(server, { image: PNG, ...NO_PREVIEW }) });
    const moved = async <T>(work: Promise<T>): Promise<T> => {
      const isDone = work.then(
        () => true,
        () => true,
      );
      while (!(await Promise.race([isDone, clock.advance(1000).then(() => false)])));
      return work;
    };
    const message = await moved(other.host.until(({ entries }) => entries.at(-1)?.message));
    server.forgetMedia('sleeps');
    const { content } = message.attachments?.[0] ?? {};
    if (content?.kind !== 'remote') throw new Error('nothing to fetch');
    const pieces = other.channel.attachments?.fetch(content.ref, new AbortController().signal);
    const given = moved(Array.fromAsync(pieces ?? []));
    await expect(given).rejects.toMatchObject({ isFinal: true });
  });

  test('that was changed on its way is none', async () => {
    const made = await fileMessage(server, { document: LARGE, mimetype: 'text/plain' });
    const other = await fileMessage(server, { document: PNG, mimetype: 'text/plain' });
    const { mediaKey } = other.documentMessage ?? {};
    const message = await received({
      documentMessage: { ...made.documentMessage, ...(mediaKey && { mediaKey }) },
    });
    await expect(fetched(message.attachments?.[0])).rejects.toThrow();
  });

  test('without a key or a place is told as unread', async () => {
    const message = await received({ imageMessage: { caption: 'look' } });
    expect(message.attachments).toMatchObject([{ kind: 'image', content: { kind: 'unread' } }]);
  });

  test.each([
    '//attacker.example/v/x',
    '/\\attacker.example/v/x',
    '/\t/attacker.example/v/x',
    '///attacker.example/v/x',
    '//169.254.169.254/latest',
  ])('cannot send us to another host than WhatsApp’s: %j', async (directPath) => {
    const made = await fileMessage(server, { image: PNG, ...NO_PREVIEW });
    const message = await received({
      imageMessage: {
        ...made.imageMessage,
        url: 'https://attacker.example/v/x',
        directPath,
      },
    });
    const { content } = message.attachments?.[0] ?? {};
    if (content?.kind !== 'remote') throw new Error('nothing to fetch');
    const pieces = rig.channel.attachments?.fetch(content.ref, AbortSignal.timeout(45_000));
    await expect(Array.fromAsync(pieces ?? [])).rejects.toThrow(
      'does not point to a WhatsApp server',
    );
  });
});

describe('a file of an answer', () => {
  const send = async (attachments: Parameters<typeof fileOf>[2][], context = sending()) => {
    await anna.writes('hello');
    const chat = await rig.host.until(({ entries }) => entries[0]?.message.chat);
    const files = await Promise.all(attachments.map((rest) => fileOf(rig.host, PNG, rest)));
    const message = { id: messageId('turn/0'), chat, markdown: '', attachments: files };
    return { receipt: await rig.channel.send(message, context), message };
  };

  test.each([
    ['image', 'imageMessage', 'a *dot*'],
    ['video', 'videoMessage', 'a *dot*'],
    ['document', 'documentMessage', 'a *dot*'],
    ['audio', 'audioMessage', ''],
    ['voice', 'audioMessage', ''],
    ['video_note', 'ptvMessage', ''],
  ] as const)('of kind %s stands in the chat as %s', async (kind, expected, caption) => {
    await send([{ kind, caption: 'a **dot**', mimeType: 'application/x-test' }]);
    const [file] = await filesSeenBy(anna);
    expect(file).toMatchObject({ kind: expected, caption });
    expect(file?.content.equals(PNG)).toBe(true);
    if (caption === '') expect(anna.seen.at(-1)?.text).toBe('a *dot*');
    if (kind === 'voice') expect(file?.media).toMatchObject({ ptt: true });
  });

  test('stands there once when it is sent again under its id', async () => {
    const { message } = await send([{ kind: 'image' }]);
    await rig.channel.send(message, sending({ attempt: 2 }));
    expect(anna.seen).toHaveLength(1);
  });

  test('that could not be uploaded has surely not been sent, and is tried again', async () => {
    server.refuseUploads(true);
    try {
      await expect(send([{ kind: 'image' }])).rejects.toMatchObject({
        certainty: 'not_sent',
        remedy: { kind: 'backoff' },
      });
    } finally {
      server.refuseUploads(false);
    }
    expect(anna.seen).toEqual([]);
  });

  test.each(['http', 'https'])(
    'is uploaded to no other host, wherever a redirect by %s leads',
    async (scheme) => {
      await using elsewhere = await startElsewhere();
      server.refuseUploads(new URL(`${scheme}://${elsewhere.host}/upload`));
      try {
        await expect(send([{ kind: 'image' }])).rejects.toMatchObject({
          certainty: 'not_sent',
          remedy: { kind: 'backoff' },
        });
      } finally {
        server.refuseUploads(false);
      }
      expect(elsewhere.connections).toBe(0);
      expect(anna.seen).toEqual([]);
    },
  );
});
