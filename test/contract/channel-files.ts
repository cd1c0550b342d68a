// What every channel that carries files promises about them.

import { expect, type TestContext, test } from 'vitest';
import type { AttachmentKind, OutboundAttachment } from '../../src/kernel/message/attachment.ts';
import { messageId } from '../../src/kernel/message/ids.ts';
import type { MemoryHost } from '../support/memory-host.ts';
import { type ChannelRig, type StartWith, sending } from './channel.ts';
import { PNG } from './media.ts';

export type SeenFile = {
  readonly name: string;
  readonly content: Buffer;
  readonly caption: string;
};

/** A content of the host's store, as an answer carries it. */
export async function fileOf(
  { media }: Pick<MemoryHost, 'media'>,
  content: Uint8Array,
  rest: Partial<OutboundAttachment> & { readonly kind: AttachmentKind },
): Promise<OutboundAttachment> {
  const { id, mimeType, sizeBytes } = await media.put(content, { maxBytes: 100_000_000 });
  return { media: id, name: 'file.bin', mimeType, sizeBytes, ...rest };
}

export function filesContract(startWith: StartWith): void {
  const started = (context: TestContext) =>
    startWith(context, 'this channel carries no files', ({ channel, personSeesFiles }) =>
      channel.attachments === undefined ? undefined : personSeesFiles,
    );
  const answer = (rig: ChannelRig, attachments: readonly OutboundAttachment[], markdown = '') => ({
    id: messageId('contract/files'),
    chat: rig.chat,
    markdown,
    attachments,
  });

  test('delivers files as they are, with their names and captions', async (context) => {
    await using rig = await started(context);
    const picture = await fileOf(rig.host, PNG, {
      kind: 'image',
      name: 'dot.png',
      caption: 'a dot',
    });
    const report = await fileOf(rig.host, Buffer.from('report'), {
      kind: 'document',
      name: 'report.txt',
    });
    const files = sending();
    const receipt = await rig.channel.send(answer(rig, [picture, report], 'Here.'), files);
    expect(receipt.nativeIds).toEqual(files.parts);
    const [first, second, ...others] = await rig.can();
    expect(others).toEqual([]);
    expect(first?.caption).toBe('a dot');
    expect(first?.content.equals(PNG)).toBe(true);
    expect(second).toMatchObject({ name: 'report.txt', caption: '' });
    expect(second?.content.toString()).toBe('report');
    expect((await rig.personSees())[0]).toContain('Here.');
  });

  test('sends no file again that an earlier try delivered', async (context) => {
    await using rig = await started(context);
    const file = await fileOf(rig.host, Buffer.from('once'), { kind: 'document' });
    const first = sending();
    await rig.channel.send(answer(rig, [file], 'text'), first);
    const again = sending({ attempt: 2, sentParts: first.parts });
    const receipt = await rig.channel.send(answer(rig, [file], 'text'), again);
    expect(receipt.nativeIds).toEqual(first.parts);
    expect(await rig.can()).toHaveLength(1);
  });

  test('delivers a caption that is too long for one beside its file', async (context) => {
    await using rig = await started(context);
    const words = Array.from({ length: 1000 }, (_, index) => `w${index}`);
    const caption = words.join(' ');
    const file = await fileOf(rig.host, Buffer.from('x'), { kind: 'document', caption });
    await rig.channel.send(answer(rig, [file]), sending());
    const [seen] = await rig.can();
    const all = [seen?.caption ?? '', ...(await rig.personSees())].join(' ');
    expect(all).toContain(words[0]);
    expect(all).toContain(words.at(-1));
  });

  test('says for good that a file is gone which the store does not have', async (context) => {
    await using rig = await started(context);
    const file = await fileOf(rig.host, Buffer.from('x'), { kind: 'document' });
    const gone = { ...file, media: 'f'.repeat(64) as typeof file.media };
    await expect(rig.channel.send(answer(rig, [gone]), sending())).rejects.toMatchObject({
      certainty: 'not_sent',
      remedy: { kind: 'never' },
    });
  });
}
