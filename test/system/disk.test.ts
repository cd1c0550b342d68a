// The whole program and the disk: what is acknowledged and sent is on it first, and while it holds
// writes back the program answers. Watched and held by strace.

import { describe, expect, it } from 'vitest';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { echo } from '../support/llm-server.ts';
import {
  failDisk,
  hasStrace,
  holdDisk,
  type SystemCall,
  type Watch,
  watchCalls,
} from '../support/strace.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const WAL = 'state.db-wal>';

const canTrace = await hasStrace();
if (!canTrace) console.log('disk tests skipped: strace is not there or may not watch a process');

const startWorld = (streaming = false) =>
  startTelegramWorld({ respond: echo, channel: { streaming, allowFrom: ['700'] } });

/** What was sent has returned from its call, and is watched, once the event loop answers. */
const callsOf = async (watch: Watch, { address }: GatewayProcess) => {
  await fetch(`${address}/healthz`);
  return watch.stop();
};

const isSync = ({ name, args }: SystemCall) =>
  (name === 'fdatasync' || name === 'fsync') && args.includes(WAL);

/** The last write into the log in front of the call that holds the text. */
function lastWrite(calls: readonly SystemCall[], text: string, effect: SystemCall) {
  return calls.findLast(
    ({ name, args, end }) =>
      name === 'pwrite64' && args.includes(WAL) && args.includes(text) && end < effect.begin,
  );
}

function expectSyncedBefore(
  calls: readonly SystemCall[],
  text: string,
  effect: SystemCall,
  write = lastWrite(calls, text, effect),
) {
  expect(write, `${text} is written first`).toBeDefined();
  const sync = calls.find(
    (call) => isSync(call) && call.begin > (write?.end ?? 0) && call.end < effect.begin,
  );
  expect(sync, `${text} is on the disk first`).toBeDefined();
}

describe.skipIf(!canTrace)('the disk', () => {
  it('has a message before it is acknowledged, and an answer before it is sent; the event loop waits for neither', async () => {
    await using world = await startWorld();
    const { telegram, gateway } = world;
    const watched = ['pwrite64', 'fsync', 'fdatasync', 'write', 'writev'];
    const watch = await watchCalls(gateway.pid, watched);
    for (const n of [1, 2, 3]) {
      telegram.say(OWNER, `please say nonce-${n}`);
      await world.hears(OWNER, new RegExp(`^nonce-${n}$`));
    }
    const calls = await callsOf(watch, gateway);
    const sent = calls.filter(({ args }) => args.includes('<TCP') || args.includes('<socket'));
    for (const n of [1, 2, 3]) {
      const question = `please say nonce-${n}`;
      const asked = calls.find(({ name, args }) => name === 'pwrite64' && args.includes(question));
      // The next poll acknowledges what the one before brought.
      const acknowledged = sent.find(
        ({ args, begin }) => begin > (asked?.begin ?? 0) && /\\"offset\\":\d+/.test(args),
      );
      const answered = sent.find(
        ({ args }) => args.includes('chat_id') && args.includes(`nonce-${n}\\"`),
      );
      if (acknowledged === undefined || answered === undefined) throw new Error('not seen');
      // The turn may have ended before the next poll, and written the page of its question again.
      expectSyncedBefore(calls, question, acknowledged, asked);
      expectSyncedBefore(calls, `nonce-${n}`, answered);
    }
    expect(calls.filter((call) => isSync(call) && call.thread === gateway.pid)).toEqual([]);
  });

  it('has an answer before the draft is edited that becomes it', async () => {
    await using world = await startWorld(true);
    const { telegram, model, gateway } = world;
    for (const n of [1, 2, 3]) {
      const rest = Promise.withResolvers<void>();
      model.script({ chunks: [`${n} begins here. `, rest.promise, `nonce-${n} ends it.`] });
      telegram.say(OWNER, `tell me ${n}`);
      await world.hears(OWNER, new RegExp(`^${n} begins here`));
      const watch = await watchCalls(gateway.pid, ['pwrite64', 'fsync', 'fdatasync', 'writev']);
      rest.resolve();
      await world.hears(OWNER, new RegExp(`nonce-${n} ends it`));
      await world.hasNo('running', 'outbound');
      const calls = await callsOf(watch, gateway);
      // A preview may show the whole text before.
      const edited = calls.findLast(
        ({ name, args }) => name === 'writev' && args.includes(`nonce-${n} ends it`),
      );
      if (edited === undefined) throw new Error('not seen');
      expect(edited.args).toContain('editMessageText');
      expectSyncedBefore(calls, `nonce-${n} ends it`, edited);
    }
  });

  it('holds writes back: the program answers and says so, and what waited is done once', async () => {
    await using world = await startWorld();
    const { telegram, model, gateway } = world;
    const ask = async (path: string) => {
      const { credentials: headers } = gateway;
      const reply = await fetch(gateway.address + path, { headers });
      return { status: reply.status, body: await reply.text() };
    };
    {
      await using _held = await holdDisk(gateway.pid);
      telegram.say(OWNER, 'please say nonce-held');
      const store = async () => JSON.parse((await ask('/readyz')).body).store;
      await expect.poll(store).toMatchObject({ ready: false, waitMs: expect.any(Number) });
      expect((await ask('/readyz')).status).toBe(503);
      for (const path of ['/healthz', '/metrics', '/', '/api/status']) {
        expect({ path, status: (await ask(path)).status }).toEqual({ path, status: 200 });
      }
      expect(world.texts(OWNER)).toEqual([]);
    }
    await world.hears(OWNER, /^nonce-held$/);
    await expect.poll(async () => (await ask('/readyz')).status).toBe(200);
    telegram.say(OWNER, 'please say nonce-after');
    await world.hears(OWNER, /^nonce-after$/);
    expect(world.texts(OWNER)).toEqual(['nonce-held', 'nonce-after']);
    expect(model.requests).toHaveLength(2);
  });

  it('refuses a sync: the program says so and ends, and goes on where it was when started again', async () => {
    await using world = await startWorld();
    const { telegram, gateway } = world;
    {
      await using _failing = await failDisk(gateway.pid);
      telegram.say(OWNER, 'please say nonce-refused');
      expect(await gateway.exited).toBe(1);
    }
    expect(gateway.output()).toMatch(/state\.db \(EIO\).*start nanobot again/);
    expect(world.texts(OWNER)).toEqual([]);
    await world.start();
    await world.hears(OWNER, /^nonce-refused$/);
    telegram.say(OWNER, 'please say nonce-after');
    await world.hears(OWNER, /^nonce-after$/);
    expect(world.texts(OWNER)).toEqual(['nonce-refused', 'nonce-after']);
  });
});
