// `/why`: the life of one's own message in plain words, and never that of somebody else's.

import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { whyCommands } from '../../src/features/conversations/why-command.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { accountId, channelName, chatId, messageId, userId } from '../../src/kernel/message/ids.ts';
import { type InboundMessage, sessionOf } from '../../src/kernel/message/message.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

async function create() {
  const clock = createMovableClock();
  const path = join(await temporaryFolder(), 'state.db');
  const store = await openEmbeddedStore({ path, clock, log: silentLogger });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const limits = { maxPending: 100, maxPendingPerChat: 100 };
  const bus = createMessageBus({ store, clock, log: silentLogger, limits });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const message = (id: string, chat: string, by: string, more: object = {}): InboundMessage => ({
    id: messageId(id),
    chat: { channel: channelName('telegram'), account: accountId('default'), chat: chatId(chat) },
    sender: { kind: 'person', id: userId(by), verified: 'verified' },
    addressing: 'direct',
    text: 'some words',
    sentAt: clock.now(),
    receivedAt: clock.now(),
    ...more,
  });
  const [command] = whyCommands({
    bus,
    agent: { outcome: async () => undefined },
    context: async () => Promise.reject(),
    modes: { work: async () => [] },
    settings: { get: async () => ({}), change: async () => undefined },
    clock,
    isOwnerHere: async () => false,
    zoneOf: async () => '',
  });
  async function why(asking: InboundMessage): Promise<string> {
    await bus.accept([{ kind: 'record', message: asking, gate: 'command /why' }]);
    const origin = { session: sessionOf(asking), message: asking, role: 'trusted' as const };
    return (await command?.run(origin, '')) ?? '';
  }
  return { clock, bus, message, why };
}

it('names the gate, the turn and the answer of the last message that was no command', async () => {
  const { clock, bus, message, why } = await create();
  expect(await why(message('1', 'ann', 'ann'))).toContain('I have no earlier message');
  const refused = message('2', 'ann', 'ann');
  await bus.accept([{ kind: 'record', message: refused, gate: 'not on the allow list' }]);
  await clock.advance(5000);
  const told = await why(message('3', 'ann', 'ann'));
  expect(told).toMatch(/^Your message of 5 seconds ago: it was not given to the model\./);
  expect(told).toContain('not on the allow list');
  await bus.accept([{ kind: 'queue', message: message('4', 'ann', 'ann') }]);
  expect(await why(message('5', 'ann', 'ann'))).toContain('it is waiting or in progress.');
  expect(await why(message('6', 'ann', 'ann', { replyTo: '2' }))).toContain('allow list');
  await bus.cancel(sessionOf(refused), 'stopped by /stop');
  const stopped = await why(message('7', 'ann', 'ann'));
  expect(stopped).toContain('it was withdrawn before it was answered.');
  expect(stopped).toContain('stopped by /stop');
});

it('tells nobody about the messages of others', async () => {
  const { bus, message, why } = await create();
  const inGroup = (id: string, by: string, more: object = {}) =>
    message(id, 'team', by, { group: { ids: [chatId('team')] }, ...more });
  const refused = { kind: 'record', message: inGroup('a', 'bob'), gate: 'secret reason' } as const;
  await bus.accept([
    refused,
    { kind: 'queue', message: inGroup('b', 'bob') },
    { kind: 'record', message: message('c', 'bob', 'bob'), gate: 'secret reason' },
  ]);
  expect(await why(inGroup('d', 'ann'))).toContain('I have no earlier message');
  expect(await why(message('e', 'ann', 'ann', { replyTo: 'c' }))).toContain('no earlier message');
  expect(await why(inGroup('f', 'bob'))).toContain('it is waiting');
});
