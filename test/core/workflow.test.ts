// The coordinator and the state of workflows: what is done next follows from the state alone, every
// update is a new state, and a run always comes to an end.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Definition, Step } from '../../src/features/workflows/rules/definition.ts';
import type { StepResult } from '../../src/features/workflows/rules/state.ts';
import {
  type Decision,
  decide,
  newState,
  recordOf,
  updated,
  type WorkflowState,
} from '../../src/features/workflows/rules/state.ts';
import { type Condition, holds } from '../../src/features/workflows/rules/template.ts';
import type { JsonObject, JsonValue } from '../../src/kernel/config/json.ts';

type Loose = Partial<Omit<Extract<Step, { kind: 'tool' }>, 'kind'>> & { readonly id: string };

const tool = (step: Loose): Step => ({
  ...{ kind: 'tool', tool: 'read_file', arguments: {}, label: step.id, sets: step.id },
  ...{ retries: 0, onFailure: 'stop', runs: 1 },
  ...step,
});
const skill = (id: string): Step => {
  const {
    kind: _kind,
    tool: _tool,
    arguments: _arguments,
    ...base
  } = tool({ id }) as Extract<Step, { kind: 'tool' }>;
  return { ...base, kind: 'llm_skill', capability: 'c', with: {} };
};
const workflow = (
  steps: readonly Step[],
  more: Partial<Definition['workflow']> = {},
): Definition => ({
  workflow: {
    ...{ name: 'w', description: 'd', inputs: {}, limits: {} },
    steps: steps as Definition['workflow']['steps'],
    ...more,
  },
  capabilities: {},
});

const NO_LIMITS = { steps: 1000 };
const spent = { tokens: 10, micros: 5 };
const failure = (mayRetry = true): StepResult => ({ kind: 'failed', error: 'no', mayRetry });
const text = (said: string, isForeign = false): StepResult => ({
  kind: 'tool',
  text: said,
  isForeign,
});

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) frozen(inner);
    Object.freeze(value);
  }
  return value;
}

/** Does what the coordinator says, with these results in turn; the steps in the order they were begun. */
function follow(definition: Definition, results: (step: Step, nth: number) => StepResult) {
  let state = frozen(newState({}, false));
  const begun: string[] = [];
  for (;;) {
    const decision = decide(definition, state, NO_LIMITS);
    if (decision.kind !== 'TOOL' && decision.kind !== 'LLM_SKILL')
      return { begun, decision, state };
    const { step } = decision;
    begun.push(step.id);
    state = frozen(updated(state, step, { kind: 'begun', isEffectful: false }));
    state = frozen(updated(state, step, results(step, begun.length)));
  }
}
const order = (definition: Definition, results: Parameters<typeof follow>[1]) =>
  follow(definition, results).begun.join(' ');

describe('the coordinator', () => {
  it('does each step once in order and is complete when none is left', () => {
    const definition = workflow([tool({ id: 'a' }), skill('b'), tool({ id: 'c' })]);
    const kinds = ['TOOL', 'LLM_SKILL', 'TOOL'];
    let state = newState({}, false);
    for (const kind of kinds) {
      const decision = decide(definition, state, NO_LIMITS) as Extract<Decision, { step: Step }>;
      expect(decision.kind).toBe(kind);
      state = updated(state, decision.step, { kind: 'begun', isEffectful: false });
      expect(decide(definition, state, NO_LIMITS)).toMatchObject({ kind: 'NOOP', why: 'waiting' });
      const result: StepResult =
        kind === 'TOOL'
          ? text('x')
          : { kind: 'skill', value: { ok: true }, isForeign: false, spent };
      state = updated(state, decision.step, result);
    }
    expect(decide(definition, state, NO_LIMITS)).toEqual({ kind: 'COMPLETE' });
    expect(state).toMatchObject({ number: 3, tokens: 10, micros: 5, values: { b: { ok: true } } });
  });

  it.each<readonly [string, readonly Step[], Parameters<typeof follow>[1], string, object]>([
    [
      'leaves out a step whose flags do not hold',
      [tool({ id: 'a' }), tool({ id: 'b', when: { failed: 'a' } }), tool({ id: 'c' })],
      () => text('x'),
      'a c',
      { kind: 'COMPLETE' },
    ],
    [
      'tries a failed step again at once, as often as it may',
      [tool({ id: 'a', retries: 2 }), tool({ id: 'b' })],
      ({ id }, nth) => (id === 'a' && nth < 3 ? failure() : text('x')),
      'a a a b',
      { kind: 'COMPLETE' },
    ],
    [
      'stops where a step failed for good',
      [tool({ id: 'a', retries: 1 }), tool({ id: 'b' })],
      () => failure(),
      'a a',
      { kind: 'NOOP', why: 'failed', reason: 'the step a failed: no' },
    ],
    [
      'does not try again what cannot succeed',
      [tool({ id: 'a', retries: 5 })],
      () => failure(false),
      'a',
      { kind: 'NOOP', why: 'failed' },
    ],
    [
      'goes on without a step that may fail',
      [tool({ id: 'a', onFailure: 'continue' }), tool({ id: 'b', when: { failed: 'a' } })],
      ({ id }) => (id === 'a' ? failure() : text('x')),
      'a b',
      { kind: 'COMPLETE' },
    ],
    [
      'repeats steps in turn while values change, and no longer',
      [tool({ id: 'a', runs: 10 }), tool({ id: 'b', runs: 10 })],
      (_step, nth) => text(nth < 6 ? `${nth}` : 'same'),
      'a b a b a b a b a',
      { kind: 'COMPLETE' },
    ],
  ])('%s', (_name, steps, results, begun, decision) => {
    const followed = follow(workflow(steps), results);
    expect(followed.begun.join(' ')).toBe(begun);
    expect(followed.decision).toMatchObject(decision);
  });

  it('says so where nothing can go on and the workflow is not complete', () => {
    const complete = { equals: { path: 'a.text', value: 'good' } } as const;
    const definition = workflow([tool({ id: 'a', runs: 5 })], { complete });
    expect(follow(definition, () => text('bad'))).toMatchObject({
      begun: ['a', 'a'],
      decision: { kind: 'NOOP', why: 'stuck' },
    });
    expect(order(definition, (_step, nth) => text(nth === 3 ? 'good' : `${nth}`))).toBe('a a a');
  });

  it('is held to the less of its own limits and those of all', () => {
    const definition = workflow([tool({ id: 'a', runs: 50 })], {
      limits: { steps: 4, tokens: 100, money: 0.001 },
    });
    expect(order(definition, (_step, nth) => text(`${nth}`))).toBe('a a a a');
    const begun = newState({}, false);
    const used = (more: Partial<WorkflowState>) =>
      decide(definition, { ...begun, ...more }, { tokens: 90 });
    expect(used({ tokens: 90 })).toMatchObject({
      why: 'limit',
      reason: expect.stringMatching(/90 tokens/),
    });
    expect(used({ micros: 1000 })).toMatchObject({
      why: 'limit',
      reason: expect.stringMatching(/0\.001/),
    });
    expect(used({ tokens: 89, micros: 999 })).toMatchObject({ kind: 'TOOL' });
  });
});

describe('a state', () => {
  const a = tool({ id: 'a', retries: 1 });
  const begin = (state: WorkflowState, isEffectful: boolean) =>
    updated(state, a, { kind: 'begun', isEffectful });

  it('takes up a step that only looks after a kill, and never repeats one that may have acted', () => {
    const before = newState({ x: 1 }, false);
    const looked = updated(begin(before, false), a, { kind: 'broken_off' });
    const definition = workflow([tool({ id: 'z', when: { done: 'a' } }), a]);
    expect(decide(definition, looked, NO_LIMITS)).toEqual(decide(definition, before, NO_LIMITS));
    const acted = updated(begin(before, true), a, { kind: 'broken_off' });
    expect(decide(definition, acted, NO_LIMITS)).toMatchObject({
      kind: 'NOOP',
      reason: expect.stringMatching(/outcome unknown/),
    });
    const again = begin(updated(begin(before, false), a, failure()), false);
    expect(recordOf(updated(again, a, { kind: 'broken_off' }), 'a')).toMatchObject({
      status: 'again',
      tries: 1,
    });
  });

  it('counts a voter once, and what it cost', () => {
    const ballot = { kind: 'vote', key: 'yes' } as const;
    const spent = { tokens: 7, micros: 0 };
    const cast = (state: WorkflowState, voter: number) =>
      updated(state, a, { kind: 'cast', cast: { voter, ballot }, spent });
    const twice = cast(cast(cast(begin(newState({}, false), false), 0), 0), 1);
    expect([twice.vote?.casts.map(({ voter }) => voter), twice.tokens]).toEqual([[0, 1], 14]);
  });

  it('waits for an owner under the number of the call', () => {
    const waiting = updated(begin(newState({}, false), true), a, {
      kind: 'waiting',
      approval: 't/1',
    });
    expect(waiting.underWay).toEqual({ step: 'a', number: 1, isEffectful: true, approval: 't/1' });
    expect(decide(workflow([a]), waiting, NO_LIMITS)).toMatchObject({
      why: 'waiting',
      reason: expect.stringMatching(/approval/),
    });
  });

  it('knows what others wrote until it is written anew, and always that it was read', () => {
    const read = updated(begin(newState({}, false), false), a, text('theirs', true));
    expect([read.foreign, read.isTainted]).toEqual([['a'], true]);
    const anew = updated(begin(read, false), a, text('ours'));
    expect([anew.foreign, anew.isTainted]).toEqual([[], true]);
    expect(newState({}, true)).toMatchObject({ foreign: ['input'], isTainted: true });
    const failed = { kind: 'failed', error: 'x', mayRetry: true, isForeign: true } as const;
    expect(updated(begin(newState({}, false), false), a, failed).isTainted).toBe(true);
  });

  it('reads JSON that a tool gives as JSON beside its text', () => {
    const read = (said: string) =>
      updated(begin(newState({}, false), false), a, text(said)).values['a'];
    expect(read('{"n":1}')).toEqual({ text: '{"n":1}', json: { n: 1 } });
    expect(read('[not json')).toEqual({ text: '[not json' });
    // To store a thing nested like this would overflow the stack.
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    expect(read(deep)).toEqual({ text: deep });
  });
});

describe('whatever happens', () => {
  const ids = ['a', 'b', 'c', 'd'];
  const path = fc.constantFrom('a', 'a.text', 'b.json.0', 'input.x', 'nowhere.at.all');
  const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { depthSize: 'small' },
      fc.record({ present: path }),
      fc.record({ equals: fc.record({ path, value: fc.jsonValue() as fc.Arbitrary<JsonValue> }) }),
      fc.record({ done: fc.constantFrom(...ids) }),
      fc.record({ failed: fc.constantFrom(...ids) }),
      fc.record({ not: tie('condition') }),
      fc.record({ and: fc.array(tie('condition'), { maxLength: 3 }) }),
      fc.record({ or: fc.array(tie('condition'), { maxLength: 3 }) }),
    ),
  }));
  const steps = fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1 }).chain((names) =>
    fc.tuple(
      ...names.map((id) =>
        fc
          .record({
            when: fc.option(condition, { nil: undefined }),
            retries: fc.nat({ max: 2 }),
            runs: fc.integer({ min: 1, max: 4 }),
            onFailure: fc.constantFrom('stop' as const, 'continue' as const),
            isSkill: fc.boolean(),
          })
          .map(({ isSkill, when, ...rest }): Step => {
            const flags = when === undefined ? {} : { when };
            return isSkill ? { ...skill(id), ...rest, ...flags } : tool({ id, ...rest, ...flags });
          }),
      ),
    ),
  );
  const outcome = fc.oneof(
    fc.string().map((said) => text(said)),
    fc.jsonValue().map(
      (value): StepResult => ({
        kind: 'skill',
        value: { value } as JsonObject,
        isForeign: true,
        spent,
      }),
    ),
    fc.boolean().map(failure),
    fc.constant<StepResult>({ kind: 'broken_off' }),
  );

  it('a run comes to an end, no state is changed, and the same state gives the same decision', () => {
    fc.assert(
      fc.property(steps, fc.infiniteStream(outcome), (some, outcomes) => {
        const definition = frozen(workflow(some));
        let state = frozen(newState({ x: 1 }, false));
        let brokenOff = 0;
        for (let count = 0; count < 200; count += 1) {
          const decision = decide(definition, state, { steps: 30 });
          expect(decide(definition, structuredClone(state), { steps: 30 })).toEqual(decision);
          if (decision.kind === 'COMPLETE' || decision.kind === 'NOOP') return;
          expect(decision.number).toBe(state.number + 1);
          const { value: next } = outcomes.next();
          const result =
            next?.kind === 'broken_off' && brokenOff < 20
              ? next
              : next?.kind === 'broken_off'
                ? text('x')
                : next;
          if (result?.kind === 'broken_off') brokenOff += 1;
          state = frozen(updated(state, decision.step, { kind: 'begun', isEffectful: false }));
          const before = JSON.stringify(state);
          const after = frozen(updated(state, decision.step, result ?? text('x')));
          expect(JSON.stringify(state)).toBe(before);
          expect(after).not.toBe(state);
          state = after;
        }
        throw new Error('it goes on for ever');
      }),
      { numRuns: 150 },
    );
  });

  it('a condition has an answer, and its opposite is the other one', () => {
    const values = fc.dictionary(fc.constantFrom('a', 'b', 'input'), fc.jsonValue());
    fc.assert(
      fc.property(condition, values, (some, given) => {
        const flags = { values: given as JsonObject, status: () => undefined };
        expect(holds({ not: some }, flags)).toBe(!holds(some, flags));
      }),
      { numRuns: 150 },
    );
  });
});
