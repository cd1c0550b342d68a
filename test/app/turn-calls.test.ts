// What is measured of the model calls of a turn, whatever lies between them.

import { expect, it } from 'vitest';
import type { ToolFailureKind } from '../../src/kernel/message/errors.ts';
import { callId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { AgentEvent } from '../../src/kernel/message/message.ts';
import { createTurnCalls } from '../../src/kernel/observe/build-telemetry.ts';
import type { ModelCallRecord, TelemetryRecord } from '../../src/kernel/observe/telemetry.ts';

const TURN = turnId('terminal:list#1');
const MODEL = 'openai/sim-1';

function rig() {
  const seen: TelemetryRecord[] = [];
  const calls = createTurnCalls({ record: (record) => void seen.push(record) });
  const told = () =>
    seen.map((record) => {
      if (record.kind !== 'model_call') return record.kind;
      const { role, answer } = record;
      if (answer === undefined) return role;
      const doubt = answer.isDoubted ? ' doubted' : '';
      return `${role} ${answer.executed}/${answer.requested}${doubt}`;
    });
  return { calls, told };
}

const call = (role: string, more: Partial<ModelCallRecord> = {}): ModelCallRecord => ({
  ...{ kind: 'model_call', at: 0, durationMs: 1, role, session: sessionKey('terminal:list') },
  ...{ turnId: TURN, model: MODEL, status: 'ok', estimated: { input: 90, output: 1 }, ...more },
});
const asked = (calls: number): AgentEvent => ({ type: 'model_called', model: MODEL, calls });
const ran = (failure?: ToolFailureKind): AgentEvent => ({
  ...{ type: 'tool_finished', callId: callId('c'), preview: '' },
  ...(failure === undefined ? { status: 'ok' } : { status: 'failed', failure }),
});

it('a call is told of once its tools have ended, with how many were run', () => {
  const { calls, told } = rig();
  using turn = calls.follow(TURN);
  calls.called(call('turn', { status: 'server' }));
  expect(told()).toEqual(['turn']);
  calls.called(call('turn'));
  turn.see(asked(4));
  for (const failure of [undefined, 'not_found', 'blocked'] as const) turn.see(ran(failure));
  expect(told()).toEqual(['turn']);
  turn.see(ran('permission'));
  expect(told()).toEqual(['turn', 'turn 2/4']);
  calls.called(call('turn'));
  turn.see({ type: 'model_called', model: MODEL, calls: 0, isDoubted: true });
  expect(told()).toEqual(['turn', 'turn 2/4', 'turn 0/0 doubted']);
});

it('side work between is told of as it is, also while tools run', () => {
  const { calls, told } = rig();
  const turn = calls.follow(TURN);
  calls.called(call('router', { model: 'openai/small' }));
  calls.called(call('turn'));
  turn.see(asked(1));
  calls.called(call('reader'));
  calls.called(call('summary', { turnId: turnId('terminal:other#1') }));
  turn.see(ran());
  turn[Symbol.dispose]();
  expect(told()).toEqual(['router', 'summary', 'turn 1/1', 'reader']);
});

it('a turn that is broken off loses no call, and what follows goes on at once', () => {
  const { calls, told } = rig();
  const turn = calls.follow(TURN);
  calls.called(call('turn'));
  turn.see(asked(2));
  turn.see(ran());
  calls.called(call('turn'));
  turn[Symbol.dispose]();
  expect(told()).toEqual(['turn 1/2', 'turn']);
  calls.called(call('title'));
  expect(told()).toEqual(['turn 1/2', 'turn', 'title']);
});
