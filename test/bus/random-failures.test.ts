// Whatever fails and whenever the process dies: each message is worked on to its end once and in
// order, and each answer arrives once.

import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MessageBus, TurnHandler } from '../../src/kernel/bus/bus.ts';
import { BACKOFF, DeliveryError } from '../../src/kernel/message/errors.ts';
import { nativeId } from '../../src/kernel/message/ids.ts';
import {
  type BusBench,
  never,
  queued,
  resultOf,
  scriptedCourier,
  startDelivery,
  startWork,
} from '../contract/bus-bench.ts';
import { campaign } from '../support/campaign.ts';
import { makeEmbeddedBench } from './embedded-bench.ts';

const CHATS = ['a', 'b', 'c'] as const;
const RUNS = campaign({ short: 20, full: 1000 });
const WAIT_MS = 45_000;
/** The longest wait between two tries. */
const TAIL_MS = 60_000;

type Step =
  | { readonly kind: 'message'; readonly chat: (typeof CHATS)[number] }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'die' };
type Fate = 'succeed' | 'throw' | 'hang' | 'consume one';

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('message' as const),
      chat: fc.constantFrom(...CHATS),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(0, 500, 3000) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'die' as const }) },
);
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Fate>('succeed') },
  { weight: 2, arbitrary: fc.constantFrom<Fate>('throw', 'hang', 'consume one') },
);
const sendFate = fc.oneof(
  { weight: 5, arbitrary: fc.constant('arrive' as const) },
  { weight: 2, arbitrary: fc.constantFrom('refuse' as const, 'break' as const) },
);

/** What the platform shows, and the processes that come and go. */
class World {
  readonly arrived: string[] = [];
  readonly finished: string[] = [];
  readonly #bench: BusBench;
  readonly #fates: Fate[];
  readonly #sendFates: ('arrive' | 'refuse' | 'break')[];
  #bus: MessageBus | undefined;

  constructor(bench: BusBench, fates: Fate[], sendFates: ('arrive' | 'refuse' | 'break')[]) {
    this.#bench = bench;
    this.#fates = fates;
    this.#sendFates = sendFates;
  }

  /** A new process in place of the one before, which dies. */
  async begin(): Promise<MessageBus> {
    if (this.#bus !== undefined) await this.#bench.kill(this.#bus);
    const bus = await this.#bench.open();
    this.#bus = bus;
    startWork(bus, this.#handle, { maxAttempts: 1000 });
    const courier = scriptedCourier({ onUnknown: 'reconcile', reconcile: this.#reconcile }, (one) =>
      this.#send(one.message.markdown),
    );
    startDelivery(bus, courier);
    return bus;
  }

  readonly #handle: TurnHandler = async (turn) => {
    const texts = turn.messages.map(({ message }) => message.text);
    switch (this.#fates.shift()) {
      case 'throw':
        throw new Error('as told');
      case 'hang':
        return never;
      case 'consume one':
        return { ...resultOf(turn, `${texts[0]}`), throughSeq: turn.messages[0].seq };
      default:
        return resultOf(turn, ...texts);
    }
  };

  readonly #reconcile = async (message: { readonly markdown: string }) =>
    this.arrived.includes(message.markdown)
      ? { nativeIds: [nativeId('found')] }
      : ('absent' as const);

  #send(text: string) {
    const fate = this.#sendFates.shift() ?? 'arrive';
    if (fate === 'refuse') {
      throw new DeliveryError('refused', { certainty: 'not_sent', remedy: BACKOFF });
    }
    this.arrived.push(text);
    if (fate === 'break') {
      throw new DeliveryError('no answer', { certainty: 'unknown', remedy: BACKOFF });
    }
    return { nativeIds: [nativeId(text)] };
  }
}

describe('the bus under random failures and deaths', () => {
  it('answers each message once and each chat in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 30 }),
        fc.array(fate, { maxLength: 15 }),
        fc.array(sendFate, { maxLength: 15 }),
        async (steps: readonly Step[], fates, sendFates) => {
          await using bench = await makeEmbeddedBench();
          const world = new World(bench, [...fates], [...sendFates]);
          let bus = await world.begin();
          const said: string[] = [];
          for (const one of steps) {
            if (one.kind === 'pass') await bench.clock.advance(one.ms);
            if (one.kind === 'die') bus = await world.begin();
            if (one.kind !== 'message') continue;
            said.push(`${one.chat}${said.length}`);
            await bus.accept([queued(one.chat, said.at(-1) ?? '')]);
          }
          // A turn that hangs is let go by a new process only, and each fate is met once.
          const lives = 1 + fates.length + sendFates.length;
          for (let life = 0; life < lives && world.arrived.length < said.length; life += 1) {
            bus = await world.begin();
            await bench.clock.advance(TAIL_MS);
          }
          // The disk of a busy machine may be slower than that time passed.
          const late = performance.now() + WAIT_MS;
          while (world.arrived.length < said.length && performance.now() < late) {
            await delay(WAIT_MS / 100);
            bus = await world.begin();
            await bench.clock.advance(TAIL_MS);
          }
          expect(world.arrived).toHaveLength(said.length);
          for (const chat of CHATS) {
            const inChat = (text: string) => text.startsWith(chat);
            expect(world.arrived.filter(inChat)).toEqual(said.filter(inChat));
          }
          const rest = async () => {
            await bench.clock.advance(TAIL_MS);
            return bus.stats();
          };
          await expect.poll(rest).toMatchObject({ pending: 0, running: 0, dead: 0, unknown: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });
});
