// Configuration files that were damaged, forged or written by something that meant no good.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/kernel/config/check.ts';
import { readJson } from '../../src/kernel/config/json.ts';
import { withValue } from '../../src/kernel/config/json-paths.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';

const KEYS = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty'],
  ...['__defineGetter__', '__lookupGetter__', 'isPrototypeOf', 'propertyIsEnumerable'],
];
const SECTIONS = ['', 'agents', 'agents.defaults', 'channels', 'channels.telegram', 'gateway'];

describe('a key that reaches into object prototypes', () => {
  const cases = KEYS.flatMap((key) => SECTIONS.map((section) => [key, section] as const));

  test.each(cases)('%s in "%s" is refused and changes nothing', (key, section) => {
    const inner = `{"${key}":{"polluted":true,"enabled":true}}`;
    const text = section
      .split('.')
      .filter((name) => name !== '')
      .reduceRight((value, name) => `{"${name}":${value}}`, inner)
      .replace('{', '{"version":1,');
    expect(() => checkConfig(text, {})).toThrow(ConfigError);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('cannot be set by its path either', () => {
    withValue({}, '__proto__.polluted', true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('text that is no JSON names line and column', () => {
  test.each([
    ['', 1, 1],
    ['{\n  "a": 1,\n}', 3, 1],
    ['{"a" 1}', 1, 6],
    ['{"a": tru}', 1, 7],
    ['{\n"a": "x\ny"}', 2, 6],
    ["{'a': 1}", 1, 2],
    ['{"a": 01}', 1, 8],
    ['{"version": 1} {}', 1, 16],
    ['// note\n{}', 1, 1],
    ['\u0000', 1, 1],
  ])('%j', (text, line, column) => {
    try {
      checkConfig(text, {});
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect(error).toMatchObject({ problems: [{ line, column }] });
    }
  });

  test('a byte order mark is no error', () => {
    expect(checkConfig('\uFEFF{"version":1}', {}).raw).toEqual({ version: 1 });
  });

  test('a key written twice is an error, not a choice', () => {
    expect(() => checkConfig('{"version":1,"gateway":{"port":1,"port":2}}', {})).toThrow('problem');
  });

  test.each([
    ['nesting', '['.repeat(100_000)],
    ['length', `{"a":"${'x'.repeat(2_000_000)}"}`],
  ])('endless %s is refused without a crash', (_name, text) => {
    expect(() => checkConfig(text, {})).toThrow(ConfigError);
  });
});

test('reads any JSON exactly as JSON.parse does', () => {
  const plain = fc
    .jsonValue({ maxDepth: 5 })
    .filter((value) => !/"(__proto__|constructor|prototype)":/.test(JSON.stringify(value)));
  fc.assert(
    fc.property(plain, fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, undefined, indent);
      const { value: read, problems } = readJson(text);
      expect(read).toEqual(JSON.parse(text));
      expect(problems).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test('any text is either a configuration or a ConfigError', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"version"',
    '1',
    '"a"',
    'null',
    ' ',
    '$',
    '{X}',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 20 }), (parts) => {
      try {
        checkConfig(parts.join(''), {});
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
    { numRuns: 300 },
  );
});
