import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ATTACHMENT_KINDS } from '../../../src/kernel/message/attachment.ts';
import { TOOL_FAILURE_KINDS } from '../../../src/kernel/message/errors.ts';
import { callId, mediaId, messageId, sessionKey, turnId } from '../../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../../src/kernel/message/transcript.ts';
import {
  decodeLine,
  encodeEntry,
  encodeHeader,
  MESSAGE_LINE_STARTS,
} from '../../../src/kernel/sessions/rules/file.ts';

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
const at = fc.integer({ min: -8.64e15, max: 8.64e15 });
const turn = text.map(turnId);
const count = fc.nat();
const optional = <T>(name: string, value: fc.Arbitrary<T>) =>
  fc.option(value, { nil: undefined }).map((item) => (item === undefined ? {} : { [name]: item }));

const media = fc.array(
  fc
    .tuple(
      fc.record({
        media: fc.stringMatching(/^[0-9a-f]{64}$/).map(mediaId),
        kind: fc.constantFrom(...ATTACHMENT_KINDS),
        mimeType: text,
      }),
      optional('name', text),
    )
    .map(([base, name]) => ({ ...base, ...name })),
  { minLength: 1, maxLength: 3 },
);

const entry: fc.Arbitrary<TranscriptEntry> = fc.oneof(
  fc
    .tuple(
      turn,
      optional('messageId', text.map(messageId)),
      optional('seq', count),
      optional('media', media),
      optional('isForeign', fc.constant(true as const)),
      text,
      at,
    )
    .map(([id, known, place, came, marked, said, time]) => ({
      role: 'user' as const,
      turnId: id,
      ...known,
      ...place,
      ...came,
      ...marked,
      text: said,
      at: time,
    })),
  fc
    .tuple(
      fc.record({
        role: fc.constant('assistant' as const),
        turnId: turn,
        text,
        toolCalls: fc.array(fc.record({ id: text.map(callId), name: text, arguments: text })),
        thinking: fc.array(
          fc
            .tuple(text, optional('signature', text))
            .map(([thought, rest]) => ({ text: thought, ...rest })),
        ),
        model: text,
        at,
      }),
      optional(
        'usage',
        fc.record({ inputTokens: count, outputTokens: count, cachedTokens: count }),
      ),
      optional('throughSeq', count),
      optional('isTainted', fc.constant(true as const)),
    )
    .map(([base, usage, through, tainted]) => ({ ...base, ...usage, ...through, ...tainted })),
  fc
    .tuple(
      fc.record({
        role: fc.constant('tool' as const),
        turnId: turn,
        callId: text.map(callId),
        name: text,
        status: fc.constantFrom('ok' as const, 'failed' as const, 'unknown' as const),
        text,
        at,
      }),
      optional('isForeign', fc.constant(true as const)),
      optional('failure', fc.constantFrom(...TOOL_FAILURE_KINDS)),
    )
    .map(([base, marked, why]) => ({ ...base, ...marked, ...why })),
  fc
    .tuple(
      fc.record({ role: fc.constant('summary' as const), text, at }),
      optional('untrusted', text),
      optional('isForeign', fc.constant(true as const)),
    )
    .map(([base, untrusted, marked]) => ({ ...base, ...untrusted, ...marked })),
  fc.record({ role: fc.constant('reset' as const), at }),
  fc.record({ role: fc.constant('undo' as const), undoes: turn, by: text.map(messageId), at }),
  fc.record({
    role: fc.constant('turn_end' as const),
    turnId: turn,
    outcome: fc.constantFrom('answered' as const, 'stopped' as const, 'failed' as const),
    answers: fc.array(text),
    throughSeq: fc.nat(),
    at,
  }),
);

describe('a line of a session file', () => {
  test('reads back as the entry it was written from, on one line, carried or not', () => {
    fc.assert(
      fc.property(entry, fc.boolean(), (original, carried) => {
        const line = encodeEntry(original, carried);
        expect(line).not.toContain('\n');
        expect(decodeLine(line)).toEqual({ kind: 'entry', entry: original, carried });
      }),
      { numRuns: 500 },
    );
  });

  test('cut anywhere is damaged, never another entry', () => {
    fc.assert(
      fc.property(entry, fc.double({ min: 0, max: 0.999, noNaN: true }), (original, share) => {
        const line = encodeEntry(original);
        expect(decodeLine(line.slice(0, Math.floor(line.length * share))).kind).toBe('damaged');
      }),
    );
  });

  test('any text at all is judged without throwing', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (line) => void decodeLine(line)));
  });

  test('keeps the field names of the original files', () => {
    const line = encodeEntry({
      role: 'user',
      turnId: turnId('s#1'),
      messageId: messageId('telegram:default:7'),
      seq: 12,
      text: 'hello',
      at: Date.UTC(2026, 0, 15),
    });
    expect(JSON.parse(line)).toEqual({
      role: 'user',
      content: 'hello',
      timestamp: '2026-01-15T00:00:00.000Z',
      turn_id: 's#1',
      message_id: 'telegram:default:7',
      seq: 12,
    });
    expect(line.startsWith(MESSAGE_LINE_STARTS[0])).toBe(true);
  });

  test('a carried message does not begin like a message, so that counting passes it over', () => {
    const line = encodeEntry({ role: 'user', turnId: turnId('t'), text: 'x', at: 0 }, true);
    expect(MESSAGE_LINE_STARTS.some((start) => line.startsWith(start))).toBe(false);
  });

  test('says why a call failed, and a reason it does not know costs no more than the reason', () => {
    const line = encodeEntry({
      role: 'tool',
      turnId: turnId('t1'),
      callId: callId('c1'),
      name: 'web_fetch',
      status: 'failed',
      text: 'no answer',
      failure: 'timeout',
      at: 0,
    });
    expect(decodeLine(line)).toHaveProperty('entry.failure', 'timeout');
    const newer = decodeLine(line.replace('"timeout"', '"weather"'));
    expect(newer).toMatchObject({ entry: { status: 'failed', text: 'no answer' } });
    expect(newer).not.toHaveProperty('entry.failure');
  });

  test('fields of a newer version are passed over, a new role is set aside', () => {
    const line = '{"role":"reset","timestamp":"2026-01-15T00:00:00Z","mood":{"a":[1]}}';
    expect(decodeLine(line)).toMatchObject({ kind: 'entry', entry: { role: 'reset' } });
    expect(decodeLine(line.replace('reset', 'oracle')).kind).toBe('damaged');
  });

  test('what cannot be read of its files costs no more than the file', () => {
    const whole = { media: 'a'.repeat(64), kind: 'image', mime_type: 'image/png' };
    const lineOf = (files: unknown) =>
      JSON.stringify({
        ...{ role: 'user', content: 'x', timestamp: 0, turn_id: 't', media: files },
      });
    expect(decodeLine(lineOf([whole, { ...whole, media: '../../etc' }, 7]))).toMatchObject({
      entry: { text: 'x', media: [{ mimeType: 'image/png' }] },
    });
    expect(decodeLine(lineOf('none'))).toMatchObject({ kind: 'entry', entry: { text: 'x' } });
  });

  test('the header tells the key and what is carried', () => {
    const header = { key: sessionKey('a:b'), createdAt: 0, continues: 'x.jsonl', carried: 3 };
    expect(decodeLine(encodeHeader(header))).toEqual({ kind: 'header', header });
  });

  test('keys that reach into prototypes reach nothing', () => {
    decodeLine(
      '{"role":"user","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    );
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });
});
