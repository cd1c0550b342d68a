// The turn's state machine: which work follows which, and which transitions do not exist.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { advance, interrupt, TURN_START } from '../../src/agent/rules/turn.ts';
import type {
  LiveState,
  Progress,
  SignalOf,
  StateOf,
  TurnLimits,
  TurnState,
} from '../../src/agent/rules/turn-state.ts';
import { callId } from '../../src/kernel/message/ids.ts';

const LIMITS: TurnLimits = { maxRounds: 5, maxTokens: 1000, maxMs: 60_000 };
const FRESH: Progress = {
  rounds: 0,
  tokens: 0,
  emptyAnswers: 0,
  messagesSent: 0,
  blockedRounds: 0,
  recoveries: [],
};
const CALL = { id: callId('c1'), name: 'time', arguments: '{}' };

const waiting = (progress: Partial<Progress> = {}): StateOf<'waiting'> => ({
  phase: 'waiting',
  progress: { ...FRESH, ...progress },
  delayMs: 0,
});
const streaming = (
  progress: Partial<Progress> = {},
  ask: StateOf<'streaming'>['ask'] = { kind: 'work' },
): StateOf<'streaming'> => ({
  phase: 'streaming',
  progress: { ...FRESH, ...progress },
  ask,
  model: 'm',
});
const answered = (
  written: 'now' | 'earlier' | 'never',
  stop: 'end' | 'length' | 'refused' = 'end',
): SignalOf<'streaming'> => ({ type: 'answered', written, stop, tokens: 10 });

describe('the rounds of a turn', () => {
  it.each([
    [0, { kind: 'work' }],
    [3, { kind: 'work' }],
    [4, { kind: 'work', remainingRounds: 1 }],
    [5, { kind: 'conclude', why: 'rounds' }],
  ])('after %i of 5 rounds the next call is %o', (rounds, ask) => {
    const next = advance(waiting({ rounds }), { type: 'resumed', elapsedMs: 0 }, LIMITS);
    expect(next).toMatchObject({ phase: 'routing', ask });
  });

  it('a model that still calls tools when asked to conclude is stopped with a note', () => {
    const called = { type: 'called', calls: [CALL], tokens: 1 } as const;
    const conclude = { kind: 'conclude', why: 'rounds' } as const;
    const next = advance(streaming({ rounds: 5 }, conclude), called, LIMITS);
    expect(next).toMatchObject({ phase: 'finalizing', ending: { kind: 'limit', limit: 'rounds' } });
  });

  it('tokens and wall time end the turn between two calls', () => {
    const spent = advance(waiting({ tokens: 1000 }), { type: 'resumed', elapsedMs: 0 }, LIMITS);
    const late = advance(waiting(), { type: 'resumed', elapsedMs: 60_000 }, LIMITS);
    expect(spent).toMatchObject({ ending: { kind: 'limit', limit: 'tokens' } });
    expect(late).toMatchObject({ ending: { kind: 'limit', limit: 'time' } });
  });
});

describe('before a limit is reached', () => {
  const routed = { type: 'routed', model: 'm', size: 'fits', expectedTokens: 300 } as const;
  const routing = (progress: Partial<Progress>): StateOf<'routing'> => ({
    phase: 'routing',
    progress: { ...FRESH, ...progress },
    ask: { kind: 'work' },
  });

  it('the model answers without tools, while there are tokens and time for an answer', () => {
    const tokens = advance(routing({ rounds: 1, tokens: 500 }), routed, LIMITS);
    expect(tokens).toMatchObject({ phase: 'streaming', ask: { kind: 'conclude', why: 'tokens' } });
    const late = advance(waiting({ rounds: 1 }), { type: 'resumed', elapsedMs: 54_000 }, LIMITS);
    expect(late).toMatchObject({ ask: { kind: 'conclude', why: 'time' } });
    const stuck = advance(waiting({ blockedRounds: 2 }), { type: 'resumed', elapsedMs: 0 }, LIMITS);
    expect(stuck).toMatchObject({ ask: { kind: 'conclude', why: 'loop' } });
    const told = { type: 'resumed', elapsedMs: 0, isSteered: true } as const;
    expect(advance(waiting({ blockedRounds: 2 }), told, LIMITS)).toMatchObject({
      ask: { kind: 'work' },
    });
  });

  it('what another model than the main one decided or said counts as a call', () => {
    const calls = [{ id: 'cue_r1_1', name: 'look', arguments: '{}' }] as never;
    const doubted = routing({ rounds: 1, tokens: 5, unsupported: ['I sent it.'] });
    const decided = advance(doubted, { type: 'decided', calls, tokens: 7 }, LIMITS);
    expect(decided).toMatchObject({
      phase: 'executing',
      calls,
      progress: { rounds: 2, tokens: 12 },
    });
    expect(decided).not.toHaveProperty('progress.unsupported');
    const spoken = advance(routing({}), { type: 'spoken', tokens: 7 }, LIMITS);
    expect(spoken).toMatchObject({ phase: 'finalizing', ending: { kind: 'answered' } });
    const cue = { tools: 'none', notes: [] } as const;
    const main = advance(routing({}), { ...routed, size: 'too_large', cue, tokens: 9 }, LIMITS);
    expect(main).toMatchObject({ phase: 'compacting', cue, progress: { tokens: 9, rounds: 0 } });
    if (main.phase !== 'compacting') throw new Error('not reached');
    expect(advance(main, { type: 'compacted' }, LIMITS)).toMatchObject({ phase: 'streaming', cue });
  });

  it('no call is made that would go over the tokens, but for the first', () => {
    const over = advance(routing({ rounds: 2, tokens: 800 }), routed, LIMITS);
    expect(over).toMatchObject({ ending: { kind: 'limit', limit: 'tokens' } });
    const first = advance(routing({}), { ...routed, expectedTokens: 5000 }, LIMITS);
    expect(first).toMatchObject({ phase: 'streaming', ask: { kind: 'work' } });
  });
});

describe('an answer', () => {
  it('that is empty is asked for once more, then admitted', () => {
    const again = advance(streaming(), answered('never'), LIMITS);
    expect(again).toMatchObject({ phase: 'waiting', progress: { emptyAnswers: 1 } });
    const given = advance(streaming({ emptyAnswers: 1 }), answered('never'), LIMITS);
    expect(given).toMatchObject({ ending: { kind: 'empty' } });
  });

  it('that is empty is no failure once a text was written or sent', () => {
    const wrote = advance(streaming(), answered('earlier'), LIMITS);
    const sent = advance(streaming({ messagesSent: 1 }), answered('never'), LIMITS);
    expect(wrote).toMatchObject({ ending: { kind: 'answered' } });
    expect(sent).toMatchObject({ ending: { kind: 'answered' } });
  });

  it('cut at the length limit says so', () => {
    const cut = advance(streaming(), answered('now', 'length'), LIMITS);
    expect(cut).toMatchObject({ ending: { kind: 'answered', cut: true } });
  });

  it('refused for the thread is tried once with a smaller one, and only once', () => {
    const notTaken = {
      type: 'not_taken',
      why: 'overflow',
      text: 'too long',
    } as const;
    const first = advance(streaming(), notTaken, LIMITS);
    expect(first).toMatchObject({ phase: 'compacting', pressure: 'overflow' });
    const second = advance(streaming({ recoveries: ['overflow'] }), notTaken, LIMITS);
    expect(second).toMatchObject({ ending: { kind: 'failed', text: 'too long' } });
  });
});

describe('any run of signals', () => {
  /** Plays a turn whose every choice is drawn from the list; says how many calls it took. */
  function play(choices: readonly number[]): { calls: number; end: TurnState } {
    let state: TurnState = TURN_START;
    let calls = 0;
    for (let step = 0; state.phase !== 'done' && step < 500; step += 1) {
      if (state.phase === 'streaming') calls += 1;
      state = stepOf(state, choices[step % choices.length] ?? 0);
    }
    return { calls, end: state };
  }

  function stepOf(state: LiveState, choice: number): TurnState {
    if (choice === 9 && state.phase !== 'preparing' && state.phase !== 'finalizing') {
      return interrupt(state, { kind: 'stopped' });
    }
    switch (state.phase) {
      case 'preparing': {
        const resumption = { kind: 'ask' } as const;
        const spent = { rounds: 0, tokens: 0, messagesSent: 0, blockedRounds: 0 };
        return advance(state, { type: 'prepared', ...spent, resumption }, LIMITS);
      }
      case 'waiting':
        return advance(state, { type: 'resumed', elapsedMs: 0 }, LIMITS);
      case 'routing':
        return advance(
          state,
          {
            type: 'routed',
            model: 'm',
            size: choice % 2 ? 'fits' : 'too_large',
            expectedTokens: choice * 10,
          },
          LIMITS,
        );
      case 'compacting':
        return advance(state, { type: 'compacted' }, LIMITS);
      case 'streaming':
        return advance(state, streamSignal(choice), LIMITS);
      case 'executing':
        return advance(
          state,
          { type: 'executed', messagesSent: 0, isBlocked: choice === 1 },
          LIMITS,
        );
      case 'finalizing': {
        const outcome = { kind: 'answered', answers: [], throughSeq: 1 } as const;
        return advance(state, { type: 'recorded', outcome }, LIMITS);
      }
    }
  }

  function streamSignal(choice: number): SignalOf<'streaming'> {
    const text = 'no';
    if (choice < 6) return { type: 'called', calls: [CALL], tokens: 1 };
    if (choice === 6) return { type: 'not_taken', why: 'rejected', text };
    if (choice === 7) return { type: 'not_taken', why: 'overflow', text };
    return answered('never');
  }

  it('ends, and asks the model a bounded number of times', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 1, maxLength: 60 }), (choices) => {
        const { calls, end } = play(choices);
        expect(end.phase).toBe('done');
        // Rounds, the concluding call and one call for each recovery.
        expect(calls).toBeLessThanOrEqual(LIMITS.maxRounds + 3);
      }),
    );
  });
});

describe('the compiler', () => {
  it('refuses a signal that does not belong to the phase', () => {
    const illegal = [
      // @ts-expect-error tools cannot end while the model still streams
      () => advance(streaming(), { type: 'executed', messagesSent: 0, isBlocked: false }, LIMITS),
      // @ts-expect-error a turn that waits has no answer yet
      () => advance(waiting(), answered('now'), LIMITS),
      // @ts-expect-error a turn that is over goes nowhere
      () => advance(DONE, { type: 'compacted' }, LIMITS),
      // @ts-expect-error nothing breaks off the recording of the end
      () => interrupt(FINALIZING, { kind: 'stopped' }),
      // @ts-expect-error a state of unknown phase takes no signal
      () => advance(TURN_START as LiveState, { type: 'compacted' }, LIMITS),
    ];
    expect(illegal).toHaveLength(5);
  });
});

const DONE: StateOf<'done'> = {
  phase: 'done',
  outcome: { kind: 'answered', answers: [], throughSeq: 1 },
};
const FINALIZING: StateOf<'finalizing'> = {
  phase: 'finalizing',
  progress: FRESH,
  ending: { kind: 'stopped' },
};
