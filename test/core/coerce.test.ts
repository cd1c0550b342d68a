import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { coerceArguments, parseArguments, type ShapeSchema } from '../../src/lib/json/coerce.ts';

const schemaOf = (type: z.ZodType) => z.toJSONSchema(type, { io: 'input' }) as ShapeSchema;
const FILE = schemaOf(
  z.object({ path: z.string(), content: z.string(), lines: z.string().optional() }),
);
const ZONES = schemaOf(z.object({ zones: z.array(z.string()).optional() }));
const MIXED = schemaOf(
  z.object({
    count: z.int().optional(),
    share: z.number().optional(),
    deep: z.boolean().optional(),
    mode: z.enum(['auto', 'keyword']).optional(),
    inner: z.object({ count: z.int() }).optional(),
    anything: z.unknown().optional(),
  }),
);
const QUERY = schemaOf(z.object({ query: z.string(), limit: z.int().optional() }));

const ALIASES = { path: ['file_path', 'file'], content: ['text'] };
const coerce = (value: unknown, schema: ShapeSchema) => coerceArguments(value, schema, ALIASES);

describe('arguments as a model writes them', () => {
  test.each(['timeZone', 'timezone', 'TimeZone', 'time-zone', 'tz', 'T_Z'])(
    'the name %s is understood where it is meant',
    (name) => {
      const schema = schemaOf(z.object({ time_zone: z.string().optional() }));
      const aliases = { time_zone: ['tz'] };
      expect(coerceArguments({ [name]: 'UTC' }, schema, aliases)).toMatchObject({
        time_zone: 'UTC',
      });
      expect(coerceArguments({ [name]: 'a', time_zone: 'b' }, schema, aliases)).toMatchObject({
        time_zone: 'b',
      });
    },
  );

  test.each([
    ['', {}],
    ['  \n', {}],
    ['{"a": 1}', { a: 1 }],
    ['```json\n{"a": 1}\n```', { a: 1 }],
    ['```\n{"a": 1}```', { a: 1 }],
  ])('%j is read', (text, value) =>
    expect(parseArguments(text)).toEqual({ kind: 'parsed', value }),
  );

  test.each(['{', '{"a": }', 'path: x', "{'a': 1}", '{"a": 1} and more'])(
    '%j is reported as unreadable',
    (text) => expect(parseArguments(text).kind).toBe('unreadable'),
  );
});

describe('coercion', () => {
  test.each([
    ['a number for a string', FILE, { path: 7, content: 1.5 }, { path: '7', content: '1.5' }],
    ['a boolean for a string', FILE, { path: 'a', content: true }, { path: 'a', content: 'true' }],
    [
      'a list of lines for a string',
      FILE,
      { path: ['a'], content: ['x', 'y'] },
      { path: 'a', content: 'x\ny' },
    ],
    [
      'an object for a string',
      FILE,
      { path: 'a', content: { b: 1 } },
      { path: 'a', content: '{\n  "b": 1\n}' },
    ],
    [
      'another name',
      FILE,
      { file_path: 'a', text: 'b' },
      { path: 'a', content: 'b', file_path: 'a', text: 'b' },
    ],
    [
      'another name beside the right one',
      FILE,
      { path: 'a', file: 'b', content: '' },
      { path: 'a', file: 'b', content: '' },
    ],
    [
      'null for what is optional',
      FILE,
      { path: 'a', content: 'b', lines: null },
      { path: 'a', content: 'b' },
    ],
    ['JSON inside a string', FILE, '{"path": "a", "content": "b"}', { path: 'a', content: 'b' }],
    ['an object inside a list', FILE, [{ path: 'a', content: 'b' }], { path: 'a', content: 'b' }],
    [
      'text that looks like JSON where text is wanted',
      FILE,
      { path: 'a', content: '{"b": 1}' },
      { path: 'a', content: '{"b": 1}' },
    ],
    ['nothing at all', ZONES, null, {}],
    ['one value for a list', ZONES, { zones: 'UTC' }, { zones: ['UTC'] }],
    ['a list as text', ZONES, { zones: '["UTC", "Asia/Tokyo"]' }, { zones: ['UTC', 'Asia/Tokyo'] }],
    ['empty text for an optional list', ZONES, { zones: '' }, {}],
    ['numbers as text', MIXED, { count: ' 12 ', share: '-.5e1' }, { count: 12, share: -5 }],
    [
      'what is no number',
      MIXED,
      { count: 'twelve', share: '0x10' },
      { count: 'twelve', share: '0x10' },
    ],
    ['booleans as text', MIXED, { deep: 'True' }, { deep: true }],
    ['booleans as numbers', MIXED, { deep: 0 }, { deep: false }],
    ['another case of a choice', MIXED, { mode: 'AUTO' }, { mode: 'auto' }],
    ['an object as text inside', MIXED, { inner: '{"count": "3"}' }, { inner: { count: 3 } }],
    ['the one required value alone', QUERY, 'tea', { query: 'tea' }],
    ['the wrong type altogether', QUERY, 42, 42],
  ])('%s', (_, schema, given, expected) => {
    expect(coerce(given, schema)).toEqual(expected);
  });

  test('a name may stand for arguments, where none are given', () => {
    const implied = { content: 'usual' };
    expect(coerceArguments({ file: 'a' }, FILE, ALIASES, implied)).toMatchObject({
      path: 'a',
      content: 'usual',
    });
    expect(coerceArguments({ path: 'a', text: 'b' }, FILE, ALIASES, implied)).toMatchObject({
      content: 'b',
    });
  });

  test('what is right already stays as it is', () => {
    const right = fc.record({ path: fc.string(), content: fc.string() });
    fc.assert(fc.property(right, (input) => void expect(coerce(input, FILE)).toEqual(input)));
  });

  test('any JSON is taken without throwing, and coercing twice changes nothing more', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(FILE, ZONES, MIXED, QUERY), (value, schema) => {
        const once = coerce(value, schema);
        expect(coerce(once, schema)).toEqual(once);
      }),
    );
  });
});

test('arguments nested a million deep are judged like any others', () => {
  const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
  for (const text of [deep, `{"path": ${deep}}`, `{"anything": ${deep}}`]) {
    const parsed = parseArguments(text);
    if (parsed.kind === 'parsed') coerceArguments(parsed.value, MIXED);
    if (parsed.kind === 'parsed') coerceArguments(parsed.value, FILE);
  }
});

describe('keys that reach into prototypes (case X15)', () => {
  const poison = '{"polluted": 1, "path": "x"}';
  const texts = ['__proto__', 'constructor', 'prototype'].flatMap((key) => [
    `{"${key}": ${poison}, "path": "a", "content": "b"}`,
    `{"path": {"${key}": ${poison}}, "content": "b"}`,
    `{"inner": {"${key}": ${poison}, "count": 1}}`,
    `{"anything": {"deep": [{"${key}": ${poison}}]}}`,
    `{"unknown": {"${key}": ${poison}}}`,
    `[{"${key}": ${poison}}]`,
    JSON.stringify(`{"${key}": ${poison}}`),
    `{"inner": "{\\"${key}\\": {\\"polluted\\": 1}}"}`,
    `{"constructor": {"prototype": {"${key}": ${poison}}}}`,
    `{"zones": [{"${key}": ${poison}}]}`,
  ]);

  test.each(texts)('%s pollutes nothing and does not get through as a key', (text) => {
    const parsed = parseArguments(text);
    if (parsed.kind === 'unreadable') throw new TypeError(parsed.problem);
    for (const schema of [FILE, ZONES, MIXED, QUERY]) {
      const coerced = coerceArguments(parsed.value, schema);
      expect(keysOf(coerced)).not.toContain('__proto__');
      expect(keysOf(coerced)).not.toContain('constructor');
    }
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(Reflect.get([], 'polluted')).toBeUndefined();
  });
});

function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...keysOf(inner)]);
}
