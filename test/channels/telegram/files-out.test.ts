// Files of answers: which of Telegram's methods takes them, albums, what it refuses, retries.

import { describe, expect, test } from 'vitest';
import type { AttachmentKind } from '../../../src/kernel/message/attachment.ts';
import type { NativeId } from '../../../src/kernel/message/ids.ts';
import { sending } from '../../contract/channel.ts';
import { fileOf } from '../../contract/channel-files.ts';
import { PNG } from '../../contract/media.ts';
import { ALICE, answer, type Rig, startRig } from './rig.ts';

const OGG = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(24), Buffer.from('OpusHead')]);

async function started(): Promise<Rig> {
  const rig = await startRig();
  rig.start();
  rig.api.say(ALICE, 'hello');
  await rig.host.until((host) => host.texts().length === 1);
  return rig;
}

const seen = (rig: Rig) => rig.api.chat(ALICE).messages.filter(({ from }) => from === 'bot');
const kinds = (rig: Rig) => seen(rig).map(({ file }) => file?.kind);

describe('a file of an answer', () => {
  test.each([
    ['image', PNG, 'image/png', 'photo'],
    ['video', Buffer.from('film'), 'video/mp4', 'video'],
    ['video_note', Buffer.from('film'), 'video/mp4', 'video_note'],
    ['audio', Buffer.from('song'), 'audio/mpeg', 'audio'],
    ['audio', Buffer.from('song'), 'audio/flac', 'document'],
    ['voice', OGG, 'audio/ogg', 'voice'],
    ['document', Buffer.from('text'), 'text/plain', 'document'],
    ['sticker', PNG, 'image/png', 'document'],
  ] as const)(
    'of kind %s goes out as what Telegram makes of it',
    async (kind, content, mimeType, as) => {
      await using rig = await started();
      const file = await fileOf(rig.host, content, { kind, mimeType });
      await rig.channel.send(answer('', { attachments: [file] }), sending());
      expect(kinds(rig)).toEqual([as]);
      expect(seen(rig)[0]?.file?.content.equals(content)).toBe(true);
    },
  );

  test('in an album with a long caption is sent once, also over two kills', async () => {
    await using rig = await started();
    const of = (caption?: string) =>
      fileOf(rig.host, PNG, { kind: 'image', ...(caption === undefined ? {} : { caption }) });
    const attachments = [await of('word '.repeat(300)), await of(), await of()];
    const message = answer('', { attachments });
    const recorded: NativeId[] = [];
    /** Dies when so many ids were recorded. */
    const tryUntil = (limit: number) => {
      const partSent = async (id: NativeId) => {
        if (recorded.length >= limit) throw new Error('killed');
        recorded.push(id);
      };
      return rig.channel.send(message, sending({ sentParts: [...recorded], partSent }));
    };
    await expect(tryUntil(1)).rejects.toThrow('killed');
    await tryUntil(9);
    const words = () => seen(rig).filter(({ text }) => text.startsWith('word'));
    expect([seen(rig).length, words().length]).toEqual([4, 1]);
    await tryUntil(9);
    expect([seen(rig).length, words().length]).toEqual([4, 1]);
  });

  test('stands in an album with its like, and the caption below the first', async () => {
    await using rig = await started();
    const of = (kind: AttachmentKind, caption?: string) =>
      fileOf(rig.host, kind === 'image' ? PNG : Buffer.from('x'), {
        kind,
        ...(caption === undefined ? {} : { caption }),
      });
    const attachments = await Promise.all([
      of('image', 'the **holiday**'),
      of('video'),
      of('image'),
      of('document'),
      of('document'),
      of('voice'),
    ]);
    const context = sending();
    await rig.channel.send(answer('All of it:', { attachments }), context);
    const messages = seen(rig);
    expect(messages.map(({ file }) => file?.kind)).toEqual([
      undefined,
      ...['photo', 'video', 'photo', 'document', 'document', 'voice'],
    ]);
    const albums = messages.map(({ album }) => album);
    expect(new Set(albums.slice(1, 4)).size).toBe(1);
    expect(new Set(albums.slice(4, 6)).size).toBe(1);
    expect(albums[6]).toBeUndefined();
    expect(messages[1]?.text).toBe('the holiday');
    expect(messages[1]?.entities).toMatchObject([{ type: 'bold' }]);
    expect(context.parts).toHaveLength(7);
  });

  test('eleven pictures are two posts', async () => {
    await using rig = await started();
    const picture = await fileOf(rig.host, PNG, { kind: 'image' });
    await rig.channel.send(answer('', { attachments: Array(11).fill(picture) }), sending());
    expect(rig.api.calls.filter(({ method }) => method === 'sendMediaGroup')).toHaveLength(1);
    expect(rig.api.calls.filter(({ method }) => method === 'sendPhoto')).toHaveLength(1);
  });

  test('that is too large for a photo, or that Telegram cannot read as one, is a document', async () => {
    await using rig = await started();
    const large = Buffer.concat([PNG, Buffer.alloc(10_000_001)]);
    const first = await fileOf(rig.host, large, { kind: 'image' });
    const second = await fileOf(rig.host, Buffer.from('no picture'), { kind: 'image' });
    await rig.channel.send(answer('', { attachments: [first] }), sending());
    await rig.channel.send(answer('', { attachments: [second] }), sending());
    await rig.channel.send(answer('', { attachments: [second, second] }), sending());
    expect(kinds(rig)).toEqual(['document', 'document', 'document', 'document']);
  });

  test('that follows a text is sent alone after a crash between the two', async () => {
    await using rig = await started();
    const file = await fileOf(rig.host, PNG, { kind: 'image' });
    const message = answer('text', { attachments: [file] });
    rig.api.fail({
      method: 'sendPhoto',
      fault: { kind: 'error', code: 429, description: 'Too Many', parameters: { retry_after: 3 } },
    });
    const first = sending();
    await expect(rig.channel.send(message, first)).rejects.toMatchObject({
      certainty: 'not_sent',
      remedy: { kind: 'after', delayMs: 3000 },
    });
    await rig.channel.send(message, sending({ attempt: 2, sentParts: first.parts }));
    expect(seen(rig).map(({ text, file: one }) => one?.kind ?? text)).toEqual(['text', 'photo']);
  });

  test('of which it is not known whether it arrived is in doubt, and says so when it comes again', async () => {
    await using rig = await started();
    const file = await fileOf(rig.host, PNG, { kind: 'image', caption: 'dot' });
    const message = answer('', { attachments: [file] });
    rig.api.fail({ method: 'sendPhoto', fault: { kind: 'drop', stage: 'after' } });
    await expect(rig.channel.send(message, sending())).rejects.toMatchObject({
      certainty: 'unknown',
    });
    await rig.channel.send(message, sending({ attempt: 2, repeatsUnknown: true }));
    expect(seen(rig).map(({ text }) => text)).toEqual([
      'dot',
      '(sent again: the first try was not confirmed)\n\ndot',
    ]);
  });

  test('with a caption of 1,024 units keeps it; with a longer one the text stands behind', async () => {
    await using rig = await started();
    const fits = await fileOf(rig.host, PNG, { kind: 'image', caption: 'x'.repeat(1024) });
    const long = await fileOf(rig.host, PNG, { kind: 'image', caption: 'y'.repeat(1025) });
    await rig.channel.send(answer('', { attachments: [fits] }), sending());
    await rig.channel.send(answer('', { attachments: [long] }), sending());
    expect(seen(rig).map(({ text }) => text.length)).toEqual([1024, 0, 1025]);
  });

  test('cannot break the form it travels in by its name', async () => {
    await using rig = await started();
    const name = 'a"\r\ncontent-disposition: form-data; name="chat_id"\r\n\r\n1.txt';
    const file = await fileOf(rig.host, Buffer.from('x'), { kind: 'document', name });
    await rig.channel.send(answer('', { attachments: [file] }), sending());
    expect(seen(rig)[0]?.file?.content.toString()).toBe('x');
    expect(seen(rig)[0]?.file?.name).not.toMatch(/[\r\n"]/);
  });
});
