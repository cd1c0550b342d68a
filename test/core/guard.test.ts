// Which calls of a turn are run: repetitions, loops, failures in a row, and what is none of them.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GuardedCall, judgeCalls } from '../../src/agent/rules/guard.ts';
import { callId, turnId } from '../../src/kernel/message/ids.ts';
import type { ToolEntry } from '../../src/kernel/message/transcript.ts';
import { wrapUntrusted } from '../../src/kernel/message/untrusted.ts';
import { resultIdOf } from '../../src/kernel/sessions/rules/earlier.ts';

const SAME_CALLS = 3;
const TURN = turnId('terminal:local#7');

const result = (text: string, more: Partial<ToolEntry> = {}): ToolEntry => ({
  role: 'tool',
  turnId: TURN,
  callId: callId('c'),
  name: 'tool',
  status: 'ok',
  text,
  at: 0,
  ...more,
});
const fault = (text: string) => result(text, { status: 'failed', failure: 'execution' });
const call = (
  kind: GuardedCall['kind'],
  key: string,
  found: string | ToolEntry = 'same',
): GuardedCall => ({
  key,
  tool: key.split(' ', 1).join(),
  kind,
  result: typeof found === 'string' ? result(found) : found,
});

/** What becomes of one more call, without its result. */
function judged(earlier: readonly GuardedCall[], { result: _, ...next }: GuardedCall) {
  const [verdict] = judgeCalls([...earlier.map((one) => [one]), [next]], SAME_CALLS);
  return verdict?.kind === 'blocked' ? verdict.why : 'run';
}

const times = (count: number, one: GuardedCall) => Array.from({ length: count }, () => one);

describe('the same call with the same result', () => {
  it.each([
    ['looks', 2],
    ['asks_the_net', 6],
    ['acts', 3],
    ['speaks', 3],
    ['not_understood', 2],
  ] as const)('of a tool that %s is run %i times', (kind, limit) => {
    const one = call(kind, 'x {}');
    expect(judged(times(limit - 1, one), one)).toBe('run');
    expect(judged(times(limit, one), one)).toBe('repeated');
    expect(judged(times(limit, one), call(kind, 'x {"other":1}'))).toBe('run');
  });

  it('is no repetition while its result changes, or after something was changed', () => {
    const states = ['1 %', '20 %', '70 %', '80 %'].map((text) => call('looks', 'job', text));
    expect(judged(states, call('looks', 'job'))).toBe('run');
    const read = call('looks', 'read a');
    const write = call('acts', 'write a');
    expect(judged([read, read, write], read)).toBe('run');
    expect(judged([read, read, call('acts', 'write a', fault('no'))], read)).toBe('repeated');
    const check = call('acts', 'run tests', '1 failed');
    const edits = [1, 2, 3, 4].flatMap((n) => [call('acts', `edit ${n}`), check]);
    expect(judged(edits, check)).toBe('run');
  });

  it('is the same although each result has its own name and boundary', () => {
    const found = (number: number) => {
      const id = resultIdOf(TURN, number);
      const text = wrapUntrusted('page', [{ text: `see ${id}` }], `${number}`.repeat(16));
      return call('asks_the_net', 'fetch', result(text, id === undefined ? {} : { resultId: id }));
    };
    expect(judged([1, 2, 3, 4, 5, 6].map(found), found(7))).toBe('repeated');
  });

  it('counts within one answer too, and of very many calls only the first are run', () => {
    const { result: _, ...look } = call('looks', 'a');
    const { result: __, ...other } = call('looks', 'b');
    const kinds = judgeCalls([[look, look, look, other]], SAME_CALLS).map(({ kind }) => kind);
    expect(kinds).toEqual(['run', 'run', 'blocked', 'run']);
    const many = Array.from({ length: 60 }, (_each, n) => ({ ...look, key: `look ${n}` }));
    expect(judgeCalls([many], SAME_CALLS).filter(({ kind }) => kind === 'run')).toHaveLength(40);
  });
});

describe('beside repetitions', () => {
  it('a skill is read once', () => {
    const skill = call('looks', 'read_skill {"name":"tea"}');
    expect(judged([skill], skill)).toBe('once');
    expect(judged([skill], call('looks', 'read_skill {"name":"cake"}'))).toBe('run');
    expect(judged([call('looks', skill.key, fault('busy'))], skill)).toBe('run');
  });

  it('a circle of different calls is left after three rounds without anything new', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((key) => call('asks_the_net', key));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three calls');
    expect(judged([a, b, a, b, a], b)).toBe('run');
    expect(judged([a, b, a, b, a, b], a)).toBe('loop');
    expect(judged([c, a, b, c, a, b, c, a, b], c)).toBe('loop');
    expect(judged([a, b, a, b, a, b], c)).toBe('run');
    const polls = ['1', '2', '3'].flatMap((text) => [a, call('asks_the_net', 'b', text)]);
    expect(judged(polls, a)).toBe('run');
  });

  it('a tool that fails three times in one way is left alone until something else was done', () => {
    const failing = (key: string) => call('asks_the_net', `search ${key}`, fault('no connection'));
    const three = ['a', 'b', 'c'].map(failing);
    expect(judged(three.slice(1), failing('d'))).toBe('run');
    expect(judged(three, failing('d'))).toBe('failing');
    expect(judged([...three, call('acts', 'repair')], failing('d'))).toBe('run');
    expect(judged([...three.slice(1), call('asks_the_net', 'search x')], failing('d'))).toBe('run');
    const asked = result('an owner is asked', { status: 'failed', failure: 'permission' });
    const letters = ['a', 'b', 'c'].map((to) => call('speaks', `mail ${to}`, asked));
    expect(judged(letters, call('speaks', 'mail d'))).toBe('run');
    const misread = ['a', 'b', 'c'].map((key) =>
      call('not_understood', `search ${key}`, fault('?')),
    );
    expect(judged(misread, failing('understood'))).toBe('run');
  });

  it('a turn taken up after a crash is judged as if there had been none', () => {
    const kinds = ['looks', 'acts', 'asks_the_net'] as const;
    const one = fc.record({ kind: fc.constantFrom(...kinds), key: fc.constantFrom('a', 'b') });
    fc.assert(
      fc.property(
        fc.array(one, { maxLength: 12 }),
        fc.array(one, { maxLength: 8 }),
        (earlier, now) => {
          const before = earlier.map(({ kind, key }) => [call(kind, `${kind} ${key}`)]);
          const asked = now.map(({ kind, key }) => ({ kind, key: `${kind} ${key}`, tool: kind }));
          const whole = judgeCalls([...before, asked], SAME_CALLS);
          for (let done = 0; done <= asked.length; done += 1) {
            const rest = asked.map((each, index) => {
              if (index >= done) return each;
              const isBlocked = whole[index]?.kind === 'blocked';
              return { ...each, result: result('same', isBlocked ? { isBlocked: true } : {}) };
            });
            expect(judgeCalls([...before, rest], SAME_CALLS).slice(done)).toEqual(
              // Which earlier call is named differs: another one has its result by now.
              whole.slice(done).map(({ kind }) => expect.objectContaining({ kind })),
            );
          }
        },
      ),
    );
  });
});
