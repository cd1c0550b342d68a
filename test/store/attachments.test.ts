import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { Attachment } from '../../src/kernel/message/attachment.ts';
import { mediaId, messageId } from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { message, outbound } from '../contract/bus-bench.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NO_LIMITS = {
  cursor: undefined,
  limits: { maxPendingPerChat: 100, maxPending: 100 },
};
const HASH = 'a'.repeat(64);
const OTHER = 'b'.repeat(64);
const remote: Attachment = { kind: 'image', content: { kind: 'remote', ref: 'x' } };
const stored: Attachment = { kind: 'image', content: { kind: 'stored', media: mediaId(HASH) } };

describe('attachments of messages under way', () => {
  let folder = '';
  const clock = createMovableClock();
  const open = () =>
    openEmbeddedStore({ path: join(folder, 'state.db'), clock, log: silentLogger });
  beforeEach(async () => {
    folder = await temporaryFolder();
  });
  it('are known to every later try of the turn, once they were fetched', async () => {
    await using store = await open();
    const came = { ...message('a', '1'), attachments: [remote] };
    await store.accept([{ kind: 'queue', message: came }], NO_LIMITS);
    const { claimed } = await store.claimTurns(() => 1);
    expect(await store.setAttachments(came.id, [stored])).toBe(true);
    const [turn] = claimed;
    if (turn === undefined) throw new Error('nothing was claimed');
    await store.endTurn(turn, { kind: 'retry', at: clock.now(), reason: 'test' });
    const again = await store.claimTurns(() => 1);
    expect(again.claimed[0]?.messages[0].message).toEqual({ ...came, attachments: [stored] });
    expect(await store.neededMedia()).toEqual([HASH]);
  });

  it('are not needed any more when the message is done with', async () => {
    await using store = await open();
    const came = { ...message('a', '1'), attachments: [stored] };
    await store.accept([{ kind: 'queue', message: came }], NO_LIMITS);
    const { claimed } = await store.claimTurns(() => 1);
    const [turn] = claimed;
    if (turn === undefined) throw new Error('nothing was claimed');
    const { seq } = turn.messages[0];
    await store.endTurn(turn, { kind: 'done', throughSeq: seq, outbound: [] });
    expect(await store.neededMedia()).toEqual([]);
    expect(await store.setAttachments(came.id, [remote])).toBe(false);
    expect(await store.setAttachments(messageId('nobody'), [remote])).toBe(false);
  });

  it('of answers are needed until they were sent; words that look like one are not', async () => {
    await using store = await open();
    const file = { kind: 'image', media: mediaId(OTHER), name: 'a.png' } as const;
    const attachments = [{ ...file, mimeType: 'image/png', sizeBytes: 1 }];
    await store.queue({ ...outbound('a', 'x', `"media":"${HASH}"`), attachments });
    expect(await store.neededMedia()).toEqual([OTHER]);
    const { claimed } = await store.claimDeliveries(message('a', '1').chat.channel, () => 1);
    const [delivery] = claimed;
    if (delivery === undefined) throw new Error('nothing was claimed');
    await store.settle(delivery, { kind: 'sent', nativeIds: [] });
    expect(await store.neededMedia()).toEqual([]);
  });
});
