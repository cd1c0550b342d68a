// Cases W03, W06, W08 and W13 from the server to the host and back, and frames that overtake: the
// whole channel with real sessions.

import { afterEach, expect, it, vi } from 'vitest';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { campaign } from '../../support/campaign.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { eventually } from '../../support/whatsapp-server/listener.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { type LiveRig, startLiveRig } from './live-rig.ts';
import { answer, contextOf, OutboxRig, refOf } from './outbox-rig.ts';

const server = await trustedWhatsAppServer();

afterEach(() => vi.restoreAllMocks());
const HOUR_MS = 3_600_000;
const STEP_MS = 250;
/** What the disk and the sockets of a busy machine may take meanwhile. */
const WAIT_MS = 45_000;

/** A rig on whose clock time passes when told. */
async function timedRig(wrap?: (state: KeyValueStore) => KeyValueStore) {
  const clock = createMovableClock(Date.now());
  const rig = await startLiveRig(server, {}, wrap === undefined ? { clock } : { clock, wrap });
  /** Lets time pass until this holds. @throws after `maxMs` of it, once nothing is under way any more */
  async function passes(until: () => boolean, maxMs = 10_000) {
    const end = clock.now() + maxMs;
    const late = performance.now() + WAIT_MS;
    while (!until()) {
      if (clock.now() <= end) await clock.advance(STEP_MS);
      else if (performance.now() > late) throw new Error(`not within ${maxMs} ms of the clock`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  return { rig, clock, passes };
}

/** What was written has been taken over from the server, so that time may pass. */
const confirmed = ({ phone }: LiveRig) => expect.poll(() => phone.queued).toBe(0);

const statusOf = ({ host }: LiveRig) => host.statuses.at(-1);

/** The next connection, when the channel says it is due. */
async function reconnects({ rig, clock }: Awaited<ReturnType<typeof timedRig>>) {
  const retryAt = await rig.host.until(({ statuses }) => {
    const last = statuses.at(-1);
    return last?.kind === 'degraded' && last.retryAt;
  });
  await clock.advance(Math.max(0, retryAt - clock.now()));
  await rig.phone.online();
  await rig.host.until(({ statuses }) => statuses.at(-1)?.kind === 'running');
}

it('messages are taken in although the server never says that all of them came', async () => {
  const timed = await timedRig();
  await using rig = timed.rig;
  const alice = await server.contact(rig.phone);
  rig.phone.withholdsOfflineMarker(true);
  await rig.stop();
  const texts = ['one', 'two', 'three'];
  for (const text of texts) await alice.writes(text);
  await rig.start();
  const { logins } = rig.phone.counts;
  await timed.clock.advance(30_000);
  expect(rig.host.entries).toEqual([]);
  await timed.passes(() => rig.host.entries.length === texts.length);
  expect(rig.host.texts()).toEqual(texts);
  await alice.writes('live');
  await confirmed(rig);
  await timed.passes(() => rig.host.entries.length === texts.length + 1);
  expect(rig.phone.counts.logins).toBe(logins);
});

const CONNECTIONS = campaign({ short: 16, full: 50 });

it('after many connections a message comes once, and an answer arrives once', async () => {
  const timed = await timedRig();
  await using rig = timed.rig;
  const alice = await server.contact(rig.phone);
  for (let count = 0; count < CONNECTIONS; count += 1) {
    await rig.phone.end({ kind: count % 2 === 0 ? 'drop' : 'close' });
    await reconnects(timed);
  }
  await alice.writes('only once');
  await confirmed(rig);
  await timed.passes(() => rig.host.entries.length > 0);
  const [entry] = rig.host.entries;
  await rig.channel.send(answer(refOf(entry?.message.chat.chat ?? ''), 'also once'), contextOf());
  await eventually(() => expect(alice.seen).toMatchObject([{ text: 'also once', arrivals: 1 }]));
  expect(rig.phone.outbound).toHaveLength(1);
  expect([rig.host.entries.length, rig.host.duplicates]).toEqual([1, 0]);
  expect(rig.phone.counts.atOnce).toBe(1);
});

it('a message that finds the disk full is not confirmed, and comes when there is room', async () => {
  const disk = { isFull: false };
  const timed = await timedRig((state) => ({
    ...state,
    async setMany(rows) {
      if (disk.isFull) throw new Error('no space left');
      await state.setMany(rows);
    },
  }));
  await using rig = timed.rig;
  const alice = await server.contact(rig.phone);
  disk.isFull = true;
  const id = await alice.writes('keep this');
  await timed.passes(() => statusOf(rig)?.kind === 'degraded', 120_000);
  expect(alice.deliveredIds).toEqual([]);
  expect(rig.host.entries).toEqual([]);
  disk.isFull = false;
  await reconnects(timed);
  await confirmed(rig);
  await timed.passes(() => rig.host.entries.length > 0);
  expect(rig.host.texts()).toEqual(['keep this']);
  expect(alice.deliveredIds).toEqual([id]);
  expect(rig.phone.counts.registrations).toBe(1);
});

it('messages in compressed frames, which others overtake, keep the order they were written in', async () => {
  const timed = await timedRig();
  await using rig = timed.rig;
  const alice = await server.contact(rig.phone);
  await alice.writes('first contact');
  await confirmed(rig);
  await timed.passes(() => rig.host.entries.length === 1);
  const texts = Array.from({ length: 40 }, (_, nth) => String(nth));
  const now = Date.now();
  const writing = texts.map((text, nth) => {
    if (nth % 2 === 0) {
      server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'compress' } });
    }
    return alice.writes(text, { at: now - (texts.length - nth) * 1000 });
  });
  await Promise.all(writing);
  // All overtake one another before the time is over in which that is waited for.
  await confirmed(rig);
  expect(rig.host.entries).toHaveLength(1);
  await timed.passes(() => rig.host.entries.length === texts.length + 1);
  expect(rig.host.texts().slice(1)).toEqual(texts);
});

it.each([
  ['a minute', 60_000],
  ['an hour', HOUR_MS],
])('a phone gets what it could not read after %s, under the same id', async (_name, ms) => {
  const clock = createMovableClock(Date.now());
  await using rig = await OutboxRig.start(server, { clock });
  const [ben, chat] = await rig.friend();
  const sending = rig.send(answer(chat, 'hello again'));
  await ben.sees(() => true);
  const [id = ''] = (await sending).nativeIds;
  // The library's own memory of what it sent goes by this clock.
  const real = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => real() + ms);
  await clock.advance(ms);
  await ben.losesSession();
  await ben.asksAgain(id);
  await eventually(() => {
    expect(ben.seen).toMatchObject([{ id, text: 'hello again', arrivals: 2 }]);
  });
});

it('notes whom it gave a token of trust, which the library gives again after a week', async () => {
  await using rig = await startLiveRig(server);
  const alice = await server.contact(rig.phone);
  await alice.writes('hello');
  const [entry] = await rig.host.until(({ entries }) => entries.length > 0 && entries);
  await rig.channel.send(answer(refOf(entry?.message.chat.chat ?? ''), 'hi'), contextOf());
  await eventually(async () =>
    expect(await rig.host.state.get(`key/tctoken/${alice.lid}@lid`)).toContain('senderTimestamp'),
  );
});
