// Whatever a crash, a trim or a bad disk leaves of a transcript, the provider gets a valid thread.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repairThread } from '../../src/agent/rules/thread-repair.ts';
import { callId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { threadFaults } from '../support/thread-faults.ts';

const TURN = turnId('terminal:local#1');
const DEEP = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;

const user = (text: string, turn = TURN): TranscriptEntry => ({
  role: 'user',
  turnId: turn,
  text,
  at: 1,
});
const assistant = (text: string, ids: readonly string[] = [], at = 1): TranscriptEntry => ({
  role: 'assistant',
  turnId: TURN,
  text,
  toolCalls: ids.map((id) => ({ id: callId(id), name: 'read_file', arguments: '{}' })),
  thinking: [],
  model: 'm',
  at,
});
const tool = (id: string, text: string): TranscriptEntry => ({
  role: 'tool',
  turnId: TURN,
  callId: callId(id),
  name: 'read_file',
  status: 'ok',
  text,
  at: 1,
});

describe('a repaired thread', () => {
  it('puts each result behind its call, in the order of the calls', () => {
    const messages = repairThread([
      user('go'),
      assistant('', ['a', 'b']),
      tool('b', 'second'),
      user('are you there?'),
      tool('a', 'first'),
    ]);
    expect(messages.map(({ role, text }) => `${role}: ${text}`)).toEqual([
      'user: go',
      'assistant: ',
      'tool: first',
      'tool: second',
      'user: are you there?',
    ]);
  });

  it('says of a call without result that it was interrupted, and drops a result without call', () => {
    const messages = repairThread([user('go'), tool('x', 'lost'), assistant('', ['a'])]);
    const lost = '[interrupted: no result of this call is available]';
    expect(messages.map(({ text }) => text)).toEqual(['go', '', lost]);
  });

  it('keeps a result apart from an earlier call with the same careless id', () => {
    const messages = repairThread([
      user('go'),
      assistant('', ['call_0'], 1),
      tool('call_0', 'one'),
      assistant('', ['call_0'], 2),
      tool('call_0', 'two'),
    ]);
    const results = messages.filter((message) => message.role === 'tool');
    expect(results.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(new Set(results.map((result) => result.callId)).size).toBe(2);
  });

  it('shows nothing from before a new start', () => {
    const messages = repairThread([user('secret'), { role: 'reset', at: 2 }, user('hello')]);
    expect(messages).toEqual([{ role: 'user', text: 'hello' }]);
  });

  it('tells the model that an answer was stopped or never came', () => {
    const end = (outcome: 'stopped' | 'failed'): TranscriptEntry => ({
      role: 'turn_end',
      turnId: TURN,
      outcome,
      answers: [],
      throughSeq: 1,
      at: 1,
    });
    const [stopped] = repairThread([user('a'), end('stopped'), user('b')]);
    const [failed] = repairThread([user('a'), end('failed'), user('b')]);
    expect(stopped?.text).toBe('a\n\n[The person stopped the previous answer.]\n\nb');
    expect(failed?.text).toContain('[No answer');
  });

  it('shows a model the arguments it wrote when they cannot be read', () => {
    const broken: TranscriptEntry = {
      role: 'assistant',
      turnId: TURN,
      text: '',
      toolCalls: [
        { id: callId('functions.x:0'), name: 'read file', arguments: '{"path":"a' },
        { id: callId('b'), name: 'time', arguments: '' },
        { id: callId('c'), name: 'plan', arguments: DEEP },
      ],
      thinking: [],
      model: 'm',
      at: 1,
    };
    const messages = repairThread([user('go'), broken]);
    expect(threadFaults(messages)).toEqual([]);
    expect(messages[1]).toMatchObject({
      toolCalls: [
        { name: 'read_file', arguments: '{"unreadable":"{\\"path\\":\\"a"}' },
        { name: 'time', arguments: '{}' },
        // To write a thing nested like this again would overflow the stack.
        { name: 'plan', arguments: JSON.stringify({ unreadable: DEEP }) },
      ],
    });
  });

  it('of an undamaged conversation changes nothing', () => {
    const messages = repairThread([
      user('go'),
      assistant('looking', ['a']),
      tool('a', 'text'),
      assistant('done'),
      user('thanks'),
    ]);
    expect(messages).toEqual([
      { role: 'user', text: 'go' },
      {
        role: 'assistant',
        text: 'looking',
        toolCalls: [{ id: 'a', name: 'read_file', arguments: '{}' }],
        thinking: [],
      },
      { role: 'tool', callId: 'a', name: 'read_file', text: 'text', failed: false },
      { role: 'assistant', text: 'done', toolCalls: [], thinking: [] },
      { role: 'user', text: 'thanks' },
    ]);
  });
});

describe('any damage', () => {
  const words = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 4 }));
  const id = fc.constantFrom('a', 'b', 'call_0', 'functions.x:0', '');
  const turn = fc.constantFrom(TURN, turnId('terminal:local#2'));
  const at = fc.nat(3);
  const entry: fc.Arbitrary<TranscriptEntry> = fc.oneof(
    fc.record({ role: fc.constant('user' as const), turnId: turn, text: words, at }),
    fc.record({
      role: fc.constant('assistant' as const),
      turnId: turn,
      text: words,
      toolCalls: fc.array(
        fc.record({ id: id.map(callId), name: words, arguments: fc.oneof(words, fc.json()) }),
        { maxLength: 3 },
      ),
      thinking: fc.constant([]),
      model: fc.constant('m'),
      at,
    }),
    fc.record({
      role: fc.constant('tool' as const),
      turnId: turn,
      callId: id.map(callId),
      name: words,
      status: fc.constantFrom('ok' as const, 'failed' as const, 'unknown' as const),
      text: words,
      at,
    }),
    fc.record({ role: fc.constant('summary' as const), text: words, at }),
    fc.record({ role: fc.constant('reset' as const), at }),
    fc.record({
      role: fc.constant('turn_end' as const),
      turnId: turn,
      outcome: fc.constantFrom('answered' as const, 'stopped' as const, 'failed' as const),
      answers: fc.constant([]),
      throughSeq: fc.nat(5),
      at,
    }),
  );

  it('to a transcript still gives a thread that every provider takes', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 25 }), (entries) => {
        expect(threadFaults(repairThread(entries))).toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });

  it('that drops, doubles or moves lines of a real conversation does no more', () => {
    const conversation = [
      user('go'),
      assistant('', ['a', 'b'], 1),
      tool('a', '1'),
      tool('b', '2'),
      assistant('', ['c'], 2),
      tool('c', '3'),
      assistant('done', [], 3),
      user('again', turnId('terminal:local#2')),
    ];
    const damaged = fc
      .array(fc.nat(conversation.length - 1), { maxLength: 16 })
      .map((order) => order.flatMap((index) => conversation[index] ?? []));
    fc.assert(
      fc.property(damaged, (entries) => {
        expect(threadFaults(repairThread(entries))).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });
});
