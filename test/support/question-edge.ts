// What stands around questions in a rig: a platform that changes no texts and takes files. What came of a
// question is said in its chat.

import type { Channel } from '../../src/channels/channel.ts';
import type { MessageBus } from '../../src/kernel/bus/bus.ts';
import type { SpendButtons } from '../../src/kernel/delivery/undelivered.ts';
import { messageId } from '../../src/kernel/message/ids.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createMemoryMedia } from './memory-media.ts';

export function questionEdge(
  bus: Pick<MessageBus, 'outbound' | 'send'>,
  hasButtons: () => boolean = () => true,
) {
  const spendButtons: SpendButtons = (text, { said = '' } = {}) => ({
    rows: [],
    begin() {
      const tell = async () => {
        const sent = await bus.outbound(text);
        if (sent === undefined || said === '') return;
        await bus.send({ id: messageId(`${text}/outcome`), chat: sent.chat, markdown: said });
      };
      // The rig may be closed by then.
      tell().catch(() => undefined);
    },
  });
  const attachments = {} as NonNullable<Channel['attachments']>;
  return {
    media: createMemoryMedia(systemClock),
    spendButtons,
    channel: () => (hasButtons() ? { attachments, choices: 'buttons' as const } : { attachments }),
  };
}
