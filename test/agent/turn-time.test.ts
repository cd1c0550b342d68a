// What counts for the time of a turn, and what does not.

import { describe, expect, it } from 'vitest';
import { TurnTime } from '../../src/agent/turn-time.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { breaksOff, type ScriptedCall, says } from '../support/scripted-model.ts';
import { createRig } from './agent-rig.ts';
import { createSharedRig, decides } from './shared-turns.ts';

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
    expect(await told.promise).toBe('Ollama answers one after the other: 2 before you.');
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
    expect(await told.promise).toBe('Ollama answers one after the other: 2 before you.');
    await rig.clock.advance(3_600_000);
    release();
    expect((await running).outcome).toMatchObject({ answers: ['Together.'] });
    expect(main.requests[0]?.toolChoice).toBe('none');
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
