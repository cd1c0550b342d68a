// Kills at any point of any turn, with messages coming in between: each message is answered once or
// set aside, never both, and no answer takes up what is another turn's to answer.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TurnMessage } from '../../src/agent/agent.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import type { QueuedMessage } from '../../src/kernel/bus/bus.ts';
import type { ClaimedTurn, EmbeddedStore, TurnEnding } from '../../src/kernel/bus/store/store.ts';
import { createRunningTurn, type RunningTurn } from '../../src/kernel/bus/turn-pump.ts';
import { answerIdOf, messageId } from '../../src/kernel/message/ids.ts';
import type { OutboundMessage } from '../../src/kernel/message/message.ts';
import type { ModelMessage } from '../../src/kernel/message/transcript.ts';
import { campaign } from '../support/campaign.ts';
import { calls, type ScriptedCall, says } from '../support/scripted-model.ts';
import { CHAT, createRig, messageOf } from './agent-rig.ts';

const RUNS = campaign({ short: 15, full: 1000 });
const MAX_CALLS = 2000;
/** Few, so that messages are really set aside. */
const MAX_TRIES = 3;
const ROOM = { maxPendingPerChat: 1000, maxPending: 1000 };
const NONCE = /nonce-\d+/g;

/** `diesAt`: the event of the life's turns that is its last; `after` the last one, just before the bus knows. */
const LONGEST_WAIT_MS = 60_000;

type Life = {
  readonly arrivals: number;
  readonly arrivesAt: number;
  readonly diesAt: number | 'after';
};

const life: fc.Arbitrary<Life> = fc.record({
  arrivals: fc.integer({ min: 0, max: 2 }),
  arrivesAt: fc.integer({ min: 0, max: 6 }),
  diesAt: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 2 }) },
    { weight: 1, arbitrary: fc.integer({ min: 3, max: 8 }) },
    { weight: 1, arbitrary: fc.constant('after' as const) },
  ),
});

/** Every assistant message repeats what was said since the one before; some call a tool as well. */
const echo: ScriptedCall = (request, signal) => {
  const last = request.messages.findLastIndex(({ role }) => role === 'assistant');
  const since = request.messages.slice(last + 1);
  const text = since.flatMap(noncesOf).join(' ');
  const isTool = since.some(({ role }) => role === 'tool');
  const wantsTool = !isTool && /nonce-\d*[02468]\b/.test(text);
  return (wantsTool ? calls([{ name: 'look' }], text) : says(text))(request, signal);
};
const noncesOf = (message: ModelMessage) =>
  message.role === 'user' ? [...(message.text.match(NONCE) ?? [])] : [];

type Rig = Awaited<ReturnType<typeof createRig>>;

/** One conversation and the processes that come and go over it. */
class World {
  readonly answers: string[] = [];
  readonly setAside: string[] = [];
  said = 0;
  readonly #rig: Rig;
  readonly #store: EmbeddedStore;
  #eventsLeft = 0;

  constructor(rig: Rig) {
    this.#rig = rig;
    this.#store = rig.store;
  }

  /** A process from its start to its death, or until nothing is left to do. */
  async live({ arrivals, arrivesAt, diesAt }: Life): Promise<void> {
    await this.#rig.kill();
    await this.#store.recoverTurns();
    this.#eventsLeft = diesAt === 'after' ? Number.POSITIVE_INFINITY : diesAt;
    let left = arrivals;
    const onEvent = async (turn: RunningTurn | undefined, events: number) => {
      if (left === 0 || (turn !== undefined && events < arrivesAt)) return;
      for (; left > 0; left -= 1) await this.#hear();
      turn?.announceFollower();
    };
    if (arrivesAt === 0) await onEvent(undefined, 0);
    for (;;) {
      const claim = await this.#claim();
      if (claim === undefined) break;
      const ending = await this.#work(claim, onEvent);
      if (ending === undefined || (ending.kind === 'done' && diesAt === 'after')) return;
      const ended = this.#rig.sessions.endTurn(claim.session, (entries) =>
        this.#store.endTurn(claim, ending, entries),
      );
      expect(await ended).toBe('ended');
      const words = ('outbound' in ending ? ending.outbound : []).map(({ markdown }) => markdown);
      (ending.kind === 'done' ? this.answers : this.setAside).push(...words);
    }
    await onEvent(undefined, 0);
  }

  /** A message that its process died with often waits for its next try. */
  async #claim(): Promise<ClaimedTurn | undefined> {
    const [ready] = (await this.#store.claimTurns(() => 1)).claimed;
    if (ready !== undefined) return ready;
    await this.#rig.clock.advance(LONGEST_WAIT_MS);
    return (await this.#store.claimTurns(() => 1)).claimed[0];
  }

  async #hear(): Promise<void> {
    this.said += 1;
    const { message } = messageOf(this.said, `nonce-${this.said}`);
    const entry = {
      kind: 'queue',
      message: { ...message, id: messageId(`m:${this.said}`) },
    } as const;
    await this.#store.accept([entry], { cursor: undefined, limits: ROOM });
  }

  /** Undefined: the process died of it. */
  async #work(
    claim: ClaimedTurn,
    onEvent: (turn: RunningTurn, events: number) => Promise<void>,
  ): Promise<TurnEnding | undefined> {
    const turn = createRunningTurn(claim, this.#store);
    const [first] = claim.messages;
    if (claim.attempt > MAX_TRIES) return dead(turn, first.message.text);
    const own = this.#rig.inputOf(first.seq, [first.message.text], {
      epoch: claim.epoch,
      messages: [asked(first), ...claim.messages.slice(1).map(asked)],
      steer: async () => (await turn.join()).map(asked),
    });
    const context = await this.#rig.agent.prepare(...this.#rig.place);
    const running = this.#rig.agent.run(own, context, new AbortController().signal);
    for (let events = 0; ; events += 1) {
      if (this.#eventsLeft === 0) return undefined;
      this.#eventsLeft -= 1;
      await onEvent(turn, events);
      const step = await running.next();
      if (step.done !== true) continue;
      const { throughSeq, answers } = step.value;
      const outbound = answers.map((markdown, index) => answerOf(turn, markdown, index));
      return { kind: 'done', throughSeq, outbound };
    }
  }
}

const asked = ({ seq, message }: QueuedMessage): TurnMessage => ({
  seq,
  message,
  rights: ALL_RIGHTS,
  isForeign: false,
});

const answerOf = (turn: RunningTurn, markdown: string, index: number): OutboundMessage => ({
  id: answerIdOf(turn.id, index),
  chat: CHAT,
  markdown,
});

const dead = (turn: RunningTurn, text: string): TurnEnding => ({
  kind: 'dead',
  reason: 'the process ended during each try',
  outbound: [answerOf(turn, text, 0)],
});

it('answers each message once or sets it aside, wherever the process died', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 14 }), async (lives) => {
      const rig = await createRig({
        tools: [{ name: 'look', access: 'read', run: async () => 'seen' }],
      });
      rig.model.script(...Array.from({ length: MAX_CALLS }, () => echo));
      const world = new World(rig);
      for (const each of lives) await world.live(each);
      await world.live({ arrivals: 1, arrivesAt: 0, diesAt: Number.POSITIVE_INFINITY });
      const ended = [...world.answers, ...world.setAside].flatMap(
        (text) => text.match(NONCE) ?? [],
      );
      const said = Array.from({ length: world.said }, (_, index) => `nonce-${index + 1}`);
      expect(ended.toSorted(byNumber)).toEqual(said);
    }),
    { numRuns: RUNS },
  );
});

const byNumber = (one: string, other: string) => Number(one.slice(6)) - Number(other.slice(6));
