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

    test('takes good arguments and says shortly what they are about', () => {
      const input = tool.input.parse(good);
      expect(tool.describe(input).length).toBeLessThan(5000);
    });

    test('judges any arguments without throwing and without extra keys getting through', () => {
      for (const hostile of HOSTILE_ARGUMENTS) tool.input.safeParse(hostile);
      const parsed = tool.input.parse({ ...good, polluted: 1 });
      expect(parsed).not.toHaveProperty('polluted');
    });
  });
}
