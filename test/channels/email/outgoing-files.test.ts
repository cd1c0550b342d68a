// What of an answer's files goes out in one mail.

import { describe, expect, it } from 'vitest';
import { packFiles } from '../../../src/channels/email/answers.ts';
import type { OutboundAttachment } from '../../../src/kernel/message/attachment.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
} from '../../../src/kernel/message/ids.ts';
import { createMemoryMedia } from '../../support/memory-media.ts';
import { createMovableClock } from '../../support/movable-clock.ts';

const CHAT = { channel: channelName('email'), account: DEFAULT_ACCOUNT, chat: chatId('a@b.test') };

describe('the files of one mail', () => {
  it('are no more together than servers take; the text says what stayed behind', async () => {
    const media = createMemoryMedia(createMovableClock());
    const attachments: OutboundAttachment[] = [];
    for (const [name, megabytes] of [
      ['one', 10],
      ['two', 10],
      ['three', 1],
    ] as const) {
      const content = Buffer.alloc(megabytes * 1_000_000, name);
      const { id, sizeBytes } = await media.put(content, { maxBytes: 20_000_000 });
      const type = { kind: 'document', mimeType: 'application/octet-stream' } as const;
      attachments.push({ ...type, name, media: id, sizeBytes });
    }
    const message = { id: messageId('m'), chat: CHAT, markdown: 'Here they are.', attachments };
    const { markdown, files } = await packFiles(message, media);
    expect(files.map(({ name }) => name)).toEqual(['one', 'three']);
    expect(markdown).toMatch(/^Here they are\.\n\n\(The .*two.* could not be sent here\.\)$/);
  });
});
