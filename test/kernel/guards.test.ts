// Model guards: the order of the composition root decides who judges a model call first.

import { expect, it } from 'vitest';
import type { PlannedCall } from '../../src/agent/agent.ts';
import { guardedModelCalls, type ModelGuard } from '../../src/kernel/guards.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { inOrder, OrderError } from '../../src/kernel/ports.ts';

const CALL: PlannedCall = {
  payer: {
    chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') },
    sender: { kind: 'system', source: 'cron' },
  },
  ...{ role: 'turn', model: 'openai/sim', inputTokens: 10, outputTokens: 70 },
};
const never = new AbortController().signal;

function guard(name: string, passed: string[], refuses = false): ModelGuard {
  return {
    name,
    async reserve(call, signal, next) {
      passed.push(name);
      return refuses ? { kind: 'refused', text: `${name} refuses` } : next(call, signal);
    },
    modelFor: (_payer, model) => `${model} ${name}`,
  };
}

it('asks the guards in the order of the list, whoever was installed first', async () => {
  const passed: string[] = [];
  const given = [guard('budgets', passed), guard('local only', passed)];
  const calls = guardedModelCalls(() => inOrder('model guards', ['local only', 'budgets'], given));
  expect(await calls.reserve(CALL, never)).toMatchObject({ kind: 'reserved', outputTokens: 70 });
  expect(passed).toEqual(['local only', 'budgets']);
  expect(calls.modelFor(CALL.payer, 'a', () => 'b')).toBe('a local only budgets');
});

it('asks nobody behind the guard that refuses', async () => {
  const passed: string[] = [];
  const calls = guardedModelCalls(() => [
    guard('local only', passed, true),
    guard('budgets', passed),
  ]);
  expect(await calls.reserve(CALL, never)).toEqual({ kind: 'refused', text: 'local only refuses' });
  expect(passed).toEqual(['local only']);
});

it('refuses a guard that the list does not name', () => {
  expect(() => inOrder('model guards', ['budgets'], [guard('other', [])])).toThrow(OrderError);
});
