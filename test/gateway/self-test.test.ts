// The self-test of channels whose platform is scripted: what counts as trouble, what is said about it,
// and that one that hangs holds up nobody for longer than its time.

import { expect, test } from 'vitest';
import type { Channel } from '../../src/channels/channel.ts';
import { SELF_TEST_MS, selfTest, type TestedChannel } from '../../src/features/health/self-test.ts';
import { DeliveryError, NEVER } from '../../src/kernel/message/errors.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, nativeId } from '../../src/kernel/message/ids.ts';
import type { OutboundMessage } from '../../src/kernel/message/message.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';

const NAME = channelName('pigeon');
const CHAT = { channel: NAME, account: DEFAULT_ACCOUNT, chat: chatId('1') };
const PART = nativeId('7');

type Pigeon = Pick<Channel, 'send' | 'retracting' | 'selfTest'>;

function pigeon(change: Partial<Pigeon> = {}) {
  const sent: OutboundMessage[] = [];
  const removed: unknown[] = [];
  const channel: Channel = {
    name: NAME,
    account: DEFAULT_ACCOUNT,
    limits: { textUnits: 100 },
    onUnknown: 'resend',
    lifetimeMs: 1000,
    coalesces: true,
    run: () => Promise.resolve(),
    async send(message) {
      sent.push(message);
      return { nativeIds: [PART] };
    },
    retracting: {
      async retract(_chat, parts) {
        removed.push(...parts);
      },
    },
    ...change,
  };
  return { channel, sent, removed };
}

type Setting = {
  readonly channel?: Channel;
  readonly status?: TestedChannel['status'];
  readonly chat?: typeof CHAT | undefined;
  readonly clock?: MovableClock;
};

async function steps(setting: Setting = {}) {
  const clock = setting.clock ?? createMovableClock();
  const status = setting.status ?? { kind: 'running', activeAt: clock.now() - 40 };
  const found: object[] = [];
  const deps = {
    channels: () => [{ name: NAME, status }],
    channel: () => setting.channel ?? pigeon().channel,
    ownerChat: async () => ('chat' in setting ? setting.chat : CHAT),
    ...{ clock, log: silentLogger, randomBytes: (size: number) => new Uint8Array(size).fill(171) },
  };
  for await (const step of selfTest(deps, new AbortController().signal)) found.push(step);
  return found;
}

const failed = (reason: string, remedy: string) => ({
  kind: 'failed',
  channel: NAME,
  reason: expect.stringContaining(reason),
  remedy: expect.stringContaining(remedy),
});

test('a marked message goes to the owner’s chat and is taken away again', async () => {
  const { channel, sent, removed } = pigeon();
  expect(await steps({ channel })).toEqual([
    { kind: 'hop', channel: NAME, hop: 'receiving', ms: 40 },
    { kind: 'hop', channel: NAME, hop: 'sent', ms: expect.any(Number) },
    { kind: 'hop', channel: NAME, hop: 'removed', ms: expect.any(Number) },
    { kind: 'passed', channel: NAME },
  ]);
  expect(sent).toMatchObject([{ chat: CHAT, id: `self-test/${'ab'.repeat(8)}` }]);
  expect(sent[0]?.markdown).toContain('ab'.repeat(8));
  expect(removed).toEqual([PART]);
});

test('a channel that is off is nobody’s concern', async () => {
  expect(await steps({ status: { kind: 'off' } })).toEqual([]);
});

test.each([
  ['stopped', { kind: 'stopped', reason: 'the token is wrong', remedy: 'Make a new one' }, 'token'],
  ['degraded', { kind: 'degraded', reason: 'no wind' }, 'no wind'],
  ['starting', { kind: 'starting' }, 'not started'],
  ['deaf for long', { kind: 'running', activeAt: -200_000 }, 'no contact'],
] as const)(
  'a channel that is %s has failed before anything is sent',
  async (_, status, reason) => {
    const { channel, sent } = pigeon();
    const clock = createMovableClock();
    const shown =
      status.kind === 'running' ? { ...status, activeAt: clock.now() + status.activeAt } : status;
    expect(await steps({ channel, status: shown, clock })).toEqual([failed(reason, '')]);
    expect(sent).toEqual([]);
  },
);

test('without a chat with an owner it says how to get one', async () => {
  const found = await steps({ chat: undefined });
  expect(found.at(-1)).toEqual(failed('no chat with an owner', 'Send the agent one message'));
});

test('what the platform refuses is said, and what our own code broke is not shown', async () => {
  const refusing = pigeon({
    send: () =>
      Promise.reject(new DeliveryError('blocked', { certainty: 'not_sent', remedy: NEVER })),
  });
  expect((await steps({ channel: refusing.channel })).at(-1)).toEqual(
    failed('blocked', 'nanobot channels restart pigeon'),
  );
  const broken = pigeon({ send: () => Promise.reject(new Error('inner workings')) });
  expect((await steps({ channel: broken.channel })).at(-1)).toEqual(
    failed('something went wrong', 'nanobot doctor'),
  );
  const stuck = pigeon({
    retracting: {
      retract: () =>
        Promise.reject(new DeliveryError('too old', { certainty: 'not_sent', remedy: NEVER })),
    },
  });
  expect(await steps({ channel: stuck.channel })).toMatchObject([
    { hop: 'receiving' },
    { hop: 'sent' },
    failed('too old', ''),
  ]);
});

test('a channel that hangs is given its time and no more', async () => {
  const clock = createMovableClock();
  const asked = Promise.withResolvers<void>();
  const { channel } = pigeon({
    send: () => {
      asked.resolve();
      return new Promise(() => undefined);
    },
  });
  const found = steps({ channel, clock });
  await asked.promise;
  await clock.advance(SELF_TEST_MS);
  expect((await found).at(-1)).toEqual(failed('longer than 60 s', 'nanobot doctor'));
  expect(clock.pending).toBe(0);
});

test('a text that was still there when the time was over is taken away all the same', async () => {
  const clock = createMovableClock();
  const removed: unknown[] = [];
  const { channel } = pigeon({
    retracting: {
      async retract(_chat, parts, signal) {
        if (removed.length === 0) {
          removed.push('begun');
          const ended = new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          });
          await Promise.all([ended, clock.advance(SELF_TEST_MS)]);
        }
        removed.push(...parts);
      },
    },
  });
  expect((await steps({ channel, clock })).at(-1)).toEqual(failed('took longer', ''));
  await expect.poll(() => removed).toEqual(['begun', PART]);
});

test('a channel with a way of its own is tested by it', async () => {
  const { channel, sent } = pigeon({
    selfTest: {
      async *run(nonce) {
        yield `out ${nonce}`;
        yield 'back';
      },
    },
  });
  expect(await steps({ channel, chat: undefined })).toMatchObject([
    { hop: 'receiving' },
    { hop: `out ${'ab'.repeat(8)}` },
    { hop: 'back' },
    { kind: 'passed' },
  ]);
  expect(sent).toEqual([]);
});
