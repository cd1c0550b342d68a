// A process for the crash test: takes numbered messages from a platform that redelivers behind its
// cursor, answers each, and writes every send to a ledger before it returns, as a platform would.

import { appendFileSync, writeSync } from 'node:fs';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { UnknownPolicy } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { DEFAULT_ACCOUNT, nativeId } from '../../src/kernel/message/ids.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { CHANNEL, queued } from '../contract/bus-bench.ts';

const CHATS = 7;
const MAX_BATCH = 3;
const STDOUT = 1;

const [path = '', ledger = '', total = '0', policy = 'hold'] = process.argv.slice(2);
const last = Number(total);
const say = (stage: string) => writeSync(STDOUT, `${stage}\n`);

const deps = { clock: systemClock, log: silentLogger };
const store = await openEmbeddedStore({ path, ...deps, inBackground: true });
const bus = createMessageBus({
  store,
  ...deps,
  limits: { maxPendingPerChat: 1000, maxPending: 10_000 },
});
const { signal } = new AbortController();

void bus.work(
  async (turn) => {
    say('turn');
    await nextTurn();
    const [first] = turn.messages;
    return {
      throughSeq: turn.messages.at(-1)?.seq ?? first.seq,
      outbound: turn.messages.map(({ message }) => ({ chat: turn.chat, markdown: message.text })),
    };
  },
  { signal, maxOpenTurns: () => 100, maxAttempts: 1000, onPoison: () => [] },
);
void bus.deliver(
  {
    account: CHANNEL,
    onUnknown: policy as UnknownPolicy,
    lifetimeMs: 3_600_000,
    async send(message) {
      say('sending');
      await nextTurn();
      appendFileSync(ledger, `${message.chat.chat} ${message.markdown}\n`);
      say('sent');
      await nextTurn();
      return { nativeIds: [nativeId(message.markdown)] };
    },
  },
  { signal, concurrency: 4 },
);

let seen = Number((await bus.cursor(CHANNEL, DEFAULT_ACCOUNT)) ?? 0);
while (seen < last) {
  const upTo = Math.min(last, seen + MAX_BATCH);
  const batch = [];
  for (let n = seen + 1; n <= upTo; n += 1) batch.push(queued(`chat-${n % CHATS}`, String(n)));
  const cursor = { channel: CHANNEL, account: DEFAULT_ACCOUNT, value: String(upTo) };
  await bus.accept(batch, { cursor });
  say('accepted');
  seen = upTo;
}
for (;;) {
  const { pending, running, outboundQueued } = await bus.stats();
  if (pending + running + outboundQueued === 0) break;
  await delay(10);
}
process.exit(0);
