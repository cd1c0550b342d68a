// Files that people send: what the message says of them, albums, and fetching them.

import { describe, expect, test } from 'vitest';
import { AttachmentError } from '../../../src/channels/channel.ts';
import type { Attachment } from '../../../src/kernel/message/attachment.ts';
import { ALICE, type Rig, startRig } from './rig.ts';

const GROUP = -1_001_000_000_042;
const PICTURE = Buffer.from('picture');
const photo = (caption?: string) =>
  ({ field: 'photo', content: PICTURE, ...(caption === undefined ? {} : { caption }) }) as const;

const came = (rig: Rig, count = 1) =>
  rig.host.until(({ entries }) => entries.length >= count && entries.map(({ message }) => message));

async function fetchAll(rig: Rig, attachment: Attachment | undefined): Promise<string> {
  const { content } = attachment ?? {};
  if (content?.kind !== 'remote') throw new Error('nothing to fetch');
  const pieces = rig.channel.attachments?.fetch(content.ref, new AbortController().signal);
  return Buffer.concat(await Array.fromAsync(pieces ?? [])).toString();
}

describe('a file', () => {
  test.each([
    ['photo', {}, 'image'],
    ['video', { duration: 12 }, 'video'],
    ['video_note', { duration: 12 }, 'video_note'],
    ['animation', { file_name: 'a.mp4' }, 'video'],
    ['audio', { file_name: 'song.mp3', duration: 180 }, 'audio'],
    ['voice', { duration: 7, mime_type: 'audio/ogg' }, 'voice'],
    ['sticker', { emoji: '🙂' }, 'sticker'],
    ['document', { file_name: 'a.pdf', mime_type: 'application/pdf' }, 'document'],
  ] as const)(
    'sent as %s comes with what Telegram says of it, and can be fetched',
    async (field, extra, kind) => {
      await using rig = await startRig();
      rig.start();
      rig.api.sendFile(ALICE, { field, content: PICTURE, caption: 'look', extra });
      const [message] = await came(rig);
      const [attachment, ...others] = message?.attachments ?? [];
      expect(others).toEqual([]);
      expect(message?.text).toBe('look');
      expect(attachment).toMatchObject({ kind, sizeBytes: PICTURE.length });
      if ('file_name' in extra) expect(attachment?.name).toBe(extra.file_name);
      if ('mime_type' in extra) expect(attachment?.mimeType).toBe(extra.mime_type);
      if ('duration' in extra) expect(attachment?.durationMs).toBe(extra.duration * 1000);
      expect(await fetchAll(rig, attachment)).toBe('picture');
    },
  );

  test('of more than 20 MB is unread and says so', async () => {
    await using rig = await startRig();
    rig.start();
    rig.api.sendFile(ALICE, { field: 'document', content: { size: 20_000_001 } });
    const [message] = await came(rig);
    expect(message?.attachments?.[0]?.content).toEqual({
      kind: 'unread',
      reason: 'its 20 MB are more than the 20 MB that Telegram lets a bot download',
    });
  });

  test('that turns out too large while it is fetched is given up for good', async () => {
    await using rig = await startRig();
    rig.start();
    const content = { size: 30_000_000 };
    rig.api.sendFile(ALICE, { field: 'document', content, extra: { file_size: 7 } });
    const [message] = await came(rig);
    await expect(fetchAll(rig, message?.attachments?.[0])).rejects.toMatchObject({
      isFinal: true,
      reason: 'it is more than the 20 MB that Telegram lets a bot download',
    });
  });

  test('is asked for with a fresh path each time, and the token is in no failure', async () => {
    await using rig = await startRig();
    rig.start();
    rig.api.sendFile(ALICE, photo());
    const [message] = await came(rig);
    const lost = rig.api.fail({
      method: 'file',
      fault: { kind: 'error', code: 404, description: 'Not Found' },
    });
    const failed = await fetchAll(rig, message?.attachments?.[0]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(AttachmentError);
    expect(failed).toMatchObject({ isFinal: false });
    expect(lost.hits).toBe(1);
    expect(`${failed} ${(failed as Error).stack} ${(failed as Error).cause}`).not.toContain(
      rig.api.token.split(':')[1],
    );
    expect(await fetchAll(rig, message?.attachments?.[0])).toBe('picture');
  });

  test.each([
    ['is cut off in the middle', { method: 'file', fault: { kind: 'drop', stage: 'after' } }],
    [
      'is answered by a page',
      { method: 'getFile', fault: { kind: 'html', stage: 'before', status: 502 } },
    ],
  ] as const)('that %s may be tried again', async (_case, rule) => {
    await using rig = await startRig();
    rig.start();
    rig.api.sendFile(ALICE, photo());
    const [message] = await came(rig);
    rig.api.fail(rule);
    const failed = await fetchAll(rig, message?.attachments?.[0]).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Error);
    expect(failed instanceof AttachmentError && failed.isFinal).toBe(false);
    expect(await fetchAll(rig, message?.attachments?.[0])).toBe('picture');
  });

  test('that Telegram does not know any more is given up for good', async () => {
    await using rig = await startRig();
    rig.start();
    const failed = rig.channel.attachments?.fetch('nobody', new AbortController().signal);
    rig.api.fail({
      method: 'getFile',
      fault: { kind: 'error', code: 400, description: 'Bad Request: invalid file_id' },
    });
    await expect(Array.fromAsync(failed ?? [])).rejects.toMatchObject({ isFinal: true });
  });

  test('stands in words where it is quoted', async () => {
    await using rig = await startRig();
    rig.start();
    const quoted = {
      message_id: 1,
      chat: { id: ALICE, type: 'private' },
      photo: [{ file_id: 'x' }],
    };
    rig.api.say(ALICE, 'this one', { extra: { reply_to_message: { ...quoted, caption: 'cat' } } });
    const [message] = await came(rig);
    expect(message?.quoted).toEqual({ text: '[photo]\ncat' });
  });
});

describe('an album', () => {
  test('of ten is one message', async () => {
    await using rig = await startRig();
    rig.start();
    rig.api.sendAlbum(ALICE, [photo('all of them'), ...Array.from({ length: 9 }, () => photo())]);
    rig.api.say(ALICE, 'and now?');
    const [message, next] = await came(rig, 2);
    expect(message?.attachments).toHaveLength(10);
    expect(message?.text).toBe('all of them');
    expect(next?.text).toBe('and now?');
    expect(rig.host.entries).toHaveLength(2);
  });

  test('whose end comes with a later poll is one message all the same', async () => {
    await using rig = await startRig();
    rig.start();
    const extra = { media_group_id: 'holiday' };
    rig.api.say(ALICE, 'before');
    rig.api.sendFile(ALICE, photo('one'), { extra });
    rig.api.sendFile(ALICE, photo(), { extra });
    await came(rig, 1);
    rig.api.sendFile(ALICE, photo('three'), { extra });
    const [before, album] = await came(rig, 2);
    expect(before?.text).toBe('before');
    expect(album).toMatchObject({ text: 'one\nthree', attachments: [{}, {}, {}] });
    await rig.api.waitFor(() => rig.api.unconfirmed.length === 0);
    expect(rig.host.entries).toHaveLength(2);
    expect(rig.host.duplicates).toBe(0);
  });

  test('that was not stored before a crash comes whole again', async () => {
    await using rig = await startRig();
    rig.start();
    rig.api.say(ALICE, 'first');
    rig.api.sendAlbum(ALICE, [photo(), photo()]);
    await came(rig, 1);
    await rig.stop();
    rig.start();
    const [, album] = await came(rig, 2);
    expect(album?.attachments).toHaveLength(2);
  });

  test('in a group is called for by a mention in any caption', async () => {
    await using rig = await startRig();
    rig.api.group(GROUP);
    rig.start({ groups: [String(GROUP)] });
    const alice = { id: ALICE, first_name: 'Alice' };
    rig.api.sendAlbum(alice, [photo(), photo('@nano_sim_bot which is better?'), photo()], {
      chatId: GROUP,
    });
    const [album] = await came(rig);
    expect(album).toMatchObject({ addressing: 'mention', attachments: [{}, {}, {}] });
  });

  test('of two people at once stays two', async () => {
    await using rig = await startRig();
    rig.api.group(GROUP);
    rig.start({ groups: [String(GROUP)] });
    const extra = { media_group_id: 'same' };
    for (const id of [ALICE, 778, ALICE, 778]) {
      rig.api.sendFile({ id, first_name: `P${id}` }, photo(), { chatId: GROUP, extra });
    }
    const albums = await came(rig, 2);
    expect(albums.map(({ attachments }) => attachments?.length)).toEqual([2, 2]);
  });
});
