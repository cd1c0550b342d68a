// What every tool promises to the toolbox and to the model. `good` are arguments it takes.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Tool } from '../../src/tools/tool.ts';

const HOSTILE_ARGUMENTS = [
  null,
  [],
  'text',
  0,
  true,
  { __proto__: null, path: {} },
  { nested: [[]] },
];

export function testTool(tool: Tool, good: Readonly<Record<string, unknown>>): void {
  describe(`tool ${tool.name}`, () => {
    test('has a name the vendors take, a description, and guidance when to use it', () => {
      expect(tool.name).toMatch(/^[a-z][a-z0-9_]{1,63}$/);
      expect(tool.description.length).toBeGreaterThan(20);
      expect(tool.guidance ?? '').toMatch(/use it/i);
    });

    test('describes its arguments as an object, each with a text', () => {
      const schema = z.toJSONSchema(tool.input, { io: 'input' });
      expect(schema.type).toBe('object');
      for (const property of Object.values(schema.properties ?? {})) {
        expect(property).toMatchObject({ description: expect.any(String) });
      }
    });

    test('knows other names of its own parameters, and no name twice', () => {
      const { properties = {} } = z.toJSONSchema(tool.input, { io: 'input' });
      const others = Object.entries(tool.parameterAliases ?? {});
      for (const [name, aliases] of others) {
        expect(properties).toHaveProperty(name);
        for (const alias of aliases) expect(alias).not.toBe(name);
      }
      const meant = others.flatMap(([, aliases]) => aliases);
      expect(new Set(meant).size).toBe(meant.length);
    });

    test('says at once whether it can work, and why not', () => {
      if (tool.isAvailable?.() === false) {
        expect(tool.unavailableBecause?.()).toMatch(/\w+ \w+/);
      }
    });

    test('takes good arguments and says shortly what they are about', () => {
      const input = tool.input.parse(good);
      expect(tool.describe(input).length).toBeLessThan(5000);
    });

    test('cuts no sign in two where it says what a long call is about', () => {
      for (const [key, value] of Object.entries(good)) {
        if (typeof value !== 'string') continue;
        for (const start of ['', 'x']) {
          const long = { ...good, [key]: start + '😀'.repeat(2500) };
          const parsed = tool.input.safeParse(long);
          if (parsed.success) expect(tool.describe(parsed.data).isWellFormed()).toBe(true);
        }
      }
    });

    test('judges any arguments without throwing and without extra keys getting through', () => {
      for (const hostile of HOSTILE_ARGUMENTS) tool.input.safeParse(hostile);
      const parsed = tool.input.parse({ ...good, polluted: 1 });
      expect(parsed).not.toHaveProperty('polluted');
    });
  });
}

/** What a set of tools promises: each name, and each other name, means one tool. */
export function testToolNames(tools: readonly Tool[]): void {
  test('every name and alias means one tool', () => {
    const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '');
    const names = tools.flatMap(({ name, aliases = [] }) => {
      const others = aliases.map((alias) => (typeof alias === 'string' ? alias : alias.name));
      return [...new Set([name, ...others].map(plain))];
    });
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
}
