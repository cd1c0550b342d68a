// What counts for the time of a turn, and what does not.

import { describe, expect, it } from 'vitest';
import { TurnTime } from '../../src/agent/turn-context.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import type { AgentEvent } from '../../src/kernel/message/message.ts';
import type { ToolContext } from '../../src/tools/tool.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { breaksOff, calls, type ScriptedCall, says } from '../support/scripted-model.ts';
import { createRig, messageOf } from './agent-rig.ts';
import { createSharedRig, decides } from './shared-turns.ts';
import { createSupervisedRig, routes } from './supervised-rig.ts';

it('counts what a turn takes, and nothing of what it waits for others', async () => {
  const clock = createMovableClock();
  const time = new TurnTime(clock);
  let isUp = false;
  await clock.advance(1000);
  const limit = time.limit(10_000, () => {
    isUp = true;
  });
  await clock.advance(4000);
  time.standStill();
  time.standStill();
  await clock.advance(600_000);
  expect({ isUp, elapsed: time.elapsedMs() }).toEqual({ isUp: false, elapsed: 5000 });
  time.goOn();
  time.goOn();
  await clock.advance(5999);
  expect(isUp).toBe(false);
  await clock.advance(1);
  expect(isUp).toBe(true);
  limit[Symbol.dispose]();
});

it('ends nothing once it is disposed of', async () => {
  const clock = createMovableClock();
  const time = new TurnTime(clock);
  let isUp = false;
  const limit = time.limit(1000, () => {
    isUp = true;
  });
  limit[Symbol.dispose]();
  await clock.advance(5000);
  expect({ isUp, pending: clock.pending }).toEqual({ isUp: false, pending: 0 });
});

describe('a turn that waits for a place at a local server', () => {
  /** Waits until `go`, then answers. */
  const waiting = (go: Promise<void>, then = says('Here I am.')): ScriptedCall =>
    async function* (request, signal) {
      yield { type: 'waiting', server: 'Ollama', ahead: 2 };
      await go;
      yield { type: 'waiting', server: 'Ollama', ahead: 0 };
      yield* then(request, signal);
    };

  it('is told how many are before it, and may wait longer than a turn may take', async () => {
    const rig = await createRig({ settings: { maxTurnMs: 30_000 } });
    const { promise: go, resolve: release } = Promise.withResolvers<void>();
    const told = Promise.withResolvers<string>();
    rig.model.script(waiting(go));
    const running = rig.run(rig.inputOf(1, ['hello']), undefined, (event) => {
      if (event.type === 'notice') told.resolve(event.text);
    });
    expect(await told.promise).toBe('Ollama answers one request at a time: 2 before you.');
    await rig.clock.advance(3_600_000);
    release();
    expect((await running).outcome).toMatchObject({ answers: ['Here I am.'] });
  });

  it('lets a model that shares its work wait as long', async () => {
    const { rig, router, main } = await createSharedRig('trio', {});
    const { promise: go, resolve: release } = Promise.withResolvers<void>();
    router.script(waiting(go, decides({ action: 'respond' })));
    main.script(says('Together.'));
    const told = Promise.withResolvers<string>();
    const running = rig.run(rig.inputOf(1, ['hello']), undefined, (event) => {
      if (event.type === 'notice') told.resolve(event.text);
    });
    expect(await told.promise).toBe('Ollama answers one request at a time: 2 before you.');
    await rig.clock.advance(3_600_000);
    release();
    expect((await running).outcome).toMatchObject({ answers: ['Together.'] });
    expect(main.requests[0]?.toolChoice).toBe('none');
  });

  const passed = (then: ScriptedCall, ahead: number): ScriptedCall =>
    async function* (request, signal) {
      yield { type: 'waiting', server: 'Ollama', ahead };
      yield { type: 'waiting', server: 'Ollama', ahead: 0 };
      yield* then(request, signal);
    };
  const aheadIn = (events: readonly AgentEvent[]) =>
    events.flatMap((event) => {
      const ahead = event.type === 'notice' && /(\d+) before you/.exec(event.text)?.[1];
      return ahead ? [Number(ahead)] : [];
    });

  it('hears of the waits of specialist and runner while their work is under way', async () => {
    const shared = await createSharedRig('trio', {
      readsResults: true,
      tools: [{ name: 'long', access: 'read', run: async () => 'words '.repeat(2000) }],
      delegation: { model: 'runner' },
    });
    const { rig, main, router, specialist, runner } = shared;
    router.script(
      decides({ action: 'tool', target: 'long' }),
      decides({ action: 'specialist', target: 'sums' }),
      decides({ action: 'respond' }),
    );
    runner.script(passed(says('Many words.'), 3));
    specialist.script(passed(says('It is 7.'), 4));
    main.script(says('Seven.'));
    const { events } = await rig.run(rig.inputOf(1, ['add it up']));
    expect(aheadIn(events)).toEqual([3, 4]);
    const kinds = events.map(({ type }) => type);
    expect(kinds.indexOf('tool_started')).toBeLessThan(kinds.indexOf('notice'));
    expect(kinds.indexOf('notice')).toBeLessThan(kinds.indexOf('tool_finished'));
  });

  it('hears of the waits of the supervisor, of who works for it and of who frames it', async () => {
    const { rig, main, supervisor, guardian } = await createSupervisedRig();
    supervisor.script(passed(says(routes('guardian')), 5), says(routes('FINISH')));
    guardian.script(passed(says('All is well.'), 6));
    main.script(passed(says('[[output 1]]'), 7));
    const { events, outcome } = await rig.run(rig.inputOf(1, ['how are my hosts?']));
    expect(outcome.answers).toEqual(['All is well.']);
    expect(aheadIn(events)).toEqual([5, 6, 7]);
  });

  it('keeps the deadline for what is left of it', async () => {
    const rig = await createRig({ settings: { maxTurnMs: 30_000 } });
    const shown = Promise.withResolvers<void>();
    rig.model.script(async function* (request, signal) {
      yield { type: 'waiting', server: 'Ollama', ahead: 1 };
      yield { type: 'waiting', server: 'Ollama', ahead: 0 };
      yield* breaksOff('Once upon', 'hangs')(request, signal);
    });
    const running = rig.run(rig.inputOf(1, ['hello']), undefined, (event) => {
      if (event.type === 'text_delta') shown.resolve();
    });
    await shown.promise;
    await rig.clock.advance(31_000);
    expect((await running).outcome.answers.join()).toMatch(/Stopped after 30 seconds/);
  });
});

describe('what a person asked for', () => {
  const probe = (seen: (number | undefined)[], access: 'read' | 'schedule') => ({
    ...{ name: `note_${access}`, access },
    async run(_: unknown, { requestedAt }: ToolContext) {
      seen.push(requestedAt);
      return 'Noted.';
    },
  });

  it('counts from the arrival of the newest message, however long the model takes', async () => {
    const seen: (number | undefined)[] = [];
    const tools = [probe(seen, 'read'), probe(seen, 'schedule')];
    const rig = await createRig({ tools });
    const slowly = (then: ScriptedCall): ScriptedCall =>
      async function* (request, signal) {
        await rig.clock.advance(120_000);
        yield* then(request, signal);
      };
    rig.model.script(
      slowly(calls([{ name: 'note_read' }])),
      slowly(calls([{ name: 'note_read' }, { name: 'note_schedule' }])),
      says('Set.'),
    );
    const more = [[], [messageOf(2, 'and in 5 minutes')]];
    const steer = async () => more.shift() ?? [];
    const rights = { ...ALL_RIGHTS, schedule: 'ask' } as const;
    await rig.run(rig.inputOf(1, ['in 10 minutes'], { steer, rights }));
    const arrived = [1, 2].map((seq) => messageOf(seq, '').message.receivedAt);
    expect(seen).toEqual(arrived);
    expect(rig.asked).toMatchObject([{ tool: 'note_schedule', requestedAt: arrived[1] }]);
  });
});
