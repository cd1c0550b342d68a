// What a helper at work reports: bounded, once, marked as untrusted content, and only to the conversation
// that asked.

import { expect, it } from 'vitest';
import type { TurnInput } from '../../src/agent/agent.ts';
import {
  type SubagentRun,
  subagentChat,
  subagentSession,
} from '../../src/features/subagents/rules/subagent.ts';
import { createSubagentSignals } from '../../src/features/subagents/series.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { callId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { AgentEvent, InboundMessage, TurnOutcome } from '../../src/kernel/message/message.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { CHAT, messageOf, SESSION } from '../agent/agent-rig.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const TURN = turnId(`${subagentSession('h1')}#1`);
const PARENT: SubagentRun['parent'] = {
  ...{ session: SESSION, chat: CHAT, rights: ALL_RIGHTS, isTainted: false, person: OWNER_TURN },
  ...{ payingChat: CHAT, payer: { paidBy: ['terminal:local'] } },
};
const RUN: SubagentRun = {
  ...{ id: 'h1', label: 'count', depth: 1, attempt: 1, answers: [], startedAt: 0 },
  ...{ state: 'running', telling: 'due', plan: { kind: 'task', task: 'x' }, parent: PARENT },
  terms: { readOnly: false, prompt: '', tokens: 1000, minutes: 1 },
};
const INPUT = {
  ...{ turnId: TURN, session: sessionKey(subagentSession('h1')), messages: [messageOf(1, 'task')] },
} as unknown as TurnInput;
const tool: AgentEvent = { type: 'tool_started', callId: callId('c'), name: 'x', detail: '' };
const text = (said: string): AgentEvent => ({ type: 'text_delta', text: said });

/** What the parent's conversation is told of such a turn, and what the helper itself. */
async function told(
  events: readonly AgentEvent[],
  { run = RUN, isOn = true, isForeign = false } = {},
) {
  const messages: InboundMessage[] = [];
  const entry = { role: 'user', turnId: TURN, text: '', at: 0 } satisfies TranscriptEntry;
  const signals = createSubagentSignals({
    bus: {
      accept: async (all) => {
        messages.push(...all.map(({ message }) => message));
        return [];
      },
    },
    sessions: { turn: async () => [isForeign ? { ...entry, isForeign } : entry] },
    clock: createMovableClock(),
    log: silentLogger,
    isOn: () => isOn,
  });
  let note: string | undefined;
  async function* begin(input: TurnInput): AsyncGenerator<AgentEvent, TurnOutcome, void> {
    note = input.messages[0].message.note;
    yield* events;
    return { kind: 'answered', answers: ['CRITICAL: at the end'], throughSeq: 1 };
  }
  const turn = signals.heard(INPUT, run, begin);
  const passed: AgentEvent[] = [];
  for (let step = await turn.next(); step.done !== true; step = await turn.next()) {
    passed.push(step.value);
  }
  expect(passed).toEqual(events);
  return { messages, note };
}

const lines = (...said: readonly string[]) =>
  text(said.map((each) => `CRITICAL: ${each}\n`).join(''));

it('goes to the conversation that asked, with no more rights than it had', async () => {
  const { messages, note } = await told([text('CRIT'), text('ICAL: disk full\n'), tool]);
  expect(note).toContain('CRITICAL');
  expect(messages).toHaveLength(1);
  expect(messages[0]).toMatchObject({
    ...{ chat: CHAT, session: SESSION, addressing: 'direct' },
    sender: { kind: 'system', source: 'subagent', rights: ALL_RIGHTS, paidBy: ['terminal:local'] },
  });
  expect(messages[0]?.text).toMatch(/subagent "count" \(h1\)[\s\S]*disk full/);
  expect(messages[0]?.sender).not.toHaveProperty('isTainted');
  const again = await told([lines('disk full'), tool]);
  expect(again.messages[0]?.id).toBe(messages[0]?.id);
});

it('is told once and three times at most, and not where it was withdrawn or is the answer', async () => {
  const many = await told([lines('a', 'a', 'b'), tool, lines('a', 'c', 'd', 'e'), tool]);
  expect(many.messages.map(({ id }) => id)).toHaveLength(3);
  expect(new Set(many.messages.map(({ id }) => id)).size).toBe(3);
  const discarded: AgentEvent = { type: 'text_discarded' };
  expect((await told([lines('a'), discarded, tool, lines('b')])).messages).toEqual([]);
});

it('taints who hears it where the helper read untrusted content', async () => {
  const { messages } = await told([lines('a'), tool], { isForeign: true });
  expect(messages[0]?.sender).toMatchObject({ isTainted: true });
});

it('of a helper of a helper, or where it is switched off, nobody hears', async () => {
  const events = [lines('a'), tool];
  const chat = subagentChat('h0');
  const below = { ...RUN, parent: { ...PARENT, chat, session: subagentSession('h0') } };
  for (const how of [{ isOn: false }, { run: below }]) {
    expect(await told(events, how)).toEqual({ messages: [], note: undefined });
  }
});
