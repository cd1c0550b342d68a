// The order of turn stages, and what each hook of a stage gets to see.

import { expect, test } from 'vitest';
import type { Agent, TurnMessage } from '../../src/agent/agent.ts';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import type { Turn } from '../../src/kernel/bus/bus.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import { createTurnStages, type TurnStage } from '../../src/kernel/turns/stages.ts';
import { createPermits } from '../../src/lib/async.ts';
import { message } from '../contract/bus-bench.ts';

const asked = message('7', 'hello');
const queued = { seq: 1, message: asked };
const turn = { chat: asked.chat, messages: [queued] } as unknown as Turn;
const setup = { agent: {} as Agent, permits: createPermits(1) };
const scope = {
  session: sessionKeyOf(asked.chat),
  signal: new AbortController().signal,
  show: () => undefined,
};

/** Writes its name behind the text of each message, and beside the turns it runs. */
function marking(name: string, ran: string[] = []): TurnStage {
  return {
    name,
    async run(given, next) {
      ran.push(name);
      const handled = await next(given);
      ran.push(`/${name}`);
      return handled;
    },
    message: async (each) => ({
      ...each,
      message: { ...each.message, text: `${each.message.text} ${name}` },
    }),
    arrival: async (messages) => messages.map(({ seq, ...rest }) => ({ ...rest, seq: seq * 10 })),
  };
}

test('stages run from the outside in, as the order names them', async () => {
  const ran: string[] = [];
  const given = [marking('inner', ran), marking('outer', ran)];
  const stages = createTurnStages(['outer', 'off', 'inner'], given);
  const run = stages.around(async () => {
    ran.push('dispatcher');
    return { throughSeq: 1, outbound: [] };
  });
  expect(await run(turn, setup)).toEqual({ throughSeq: 1, outbound: [] });
  expect(ran).toEqual(['outer', 'inner', 'dispatcher', '/inner', '/outer']);
});

test('each message goes through every stage in that order', async () => {
  const stages = createTurnStages(['outer', 'inner'], [marking('inner'), marking('outer')]);
  const given: TurnMessage = { ...queued, rights: NO_RIGHTS, isForeign: false };
  expect((await stages.message(given, scope)).message.text).toBe('hello outer inner');
  expect(await stages.arrival([queued], scope.signal)).toEqual([{ ...queued, seq: 100 }]);
});

test('a stage replaces what a turn is run with, and the later stages keep it', async () => {
  const permits = createPermits(9);
  const replacing: TurnStage = {
    name: 'own',
    run: (given, next) => next(given, () => ({ permits })),
  };
  const stages = createTurnStages(['own', 'later'], [replacing, marking('later')]);
  const setups: unknown[] = [];
  await stages.around(async (_turn, given) => {
    setups.push(given);
    return { throughSeq: 1, outbound: [] };
  })(turn, setup);
  expect(setups).toEqual([{ agent: setup.agent, permits }]);
});

test('an inner stage changes the agent that an outer one gave, and both changes hold', async () => {
  const naming = (name: string): TurnStage => ({
    name,
    run: (given, next) =>
      next(given, ({ agent }) => ({
        agent: { ...agent, names: [...namesOf(agent), name] } as Agent,
      })),
  });
  const namesOf = (agent: Agent) => (agent as Agent & { names?: readonly string[] }).names ?? [];
  const stages = createTurnStages(['outer', 'inner'], [naming('inner'), naming('outer')]);
  let names: readonly string[] = [];
  await stages.around(async (_turn, { agent }) => {
    names = namesOf(agent);
    return { throughSeq: 1, outbound: [] };
  })(turn, setup);
  expect(names).toEqual(['outer', 'inner']);
});

test('the first stage that has something to say of a message that is set aside says it', () => {
  const says = (name: string, markdown?: string): TurnStage => ({
    name,
    onPoison: ({ chat }) => (markdown === undefined ? undefined : [{ chat, markdown }]),
  });
  const given = [says('quiet'), says('first', 'one'), says('second', 'two')];
  const stages = createTurnStages(['quiet', 'first', 'second'], given);
  expect(stages.onPoison(turn)).toEqual([{ chat: asked.chat, markdown: 'one' }]);
  expect(createTurnStages(['quiet'], [says('quiet')]).onPoison(turn)).toBeUndefined();
});

test.each([
  [['known'], ['known', 'other'], 'the order of turn stages does not name "other"'],
  [['known'], ['known', 'known'], 'two turn stages have the name "known"'],
])('of the order %j, the stages %j are refused', (order, names, why) => {
  const stages = names.map((name) => marking(name));
  expect(() => createTurnStages(order, stages)).toThrow(why);
});
