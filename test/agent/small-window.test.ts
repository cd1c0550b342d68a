// A model with a small window of context: which tools it is described, and that a conversation still
// fits beside them.

import { expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../src/core/rights.ts';
import { textTokens } from '../../src/core/tokens.ts';
import { toolsWithRoom } from '../../src/core/tool-room.ts';
import { says } from '../support/scripted-model.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';
import { createRig } from './agent-rig.ts';

it('describes what is needed most of all our tools where not all have room', async () => {
  const { toolbox } = await createWorkspace();
  const { specs } = toolbox.offered(ALL_RIGHTS);
  expect(toolsWithRoom(specs, 128_000)).toBe(specs);
  const few = toolsWithRoom(specs, 8192);
  const names = few.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['read_file', 'write_file', 'recall', 'message']));
  const told = few.map(({ jsonChars: _, ...spec }) => spec);
  expect(textTokens(JSON.stringify(told))).toBeLessThan(8192 / 4);
  expect(specs.filter(({ name }) => names.includes(name))).toEqual(few);
});

it('leaves room for the conversation beside any number of tools', async () => {
  const tools = Array.from({ length: 300 }, (_, n) => ({
    name: `tool_number_${n}`,
    access: 'read' as const,
    run: async () => 'done',
  }));
  const rig = await createRig({ contextTokens: 8192, local: true, tools });
  rig.model.script(says('noted'), says('blue'));
  const rest = 'and so on and so forth '.repeat(40);
  await rig.ask(1, `my door is blue ${rest} and that was all`);
  await rig.ask(2, 'what colour is my door?');
  const request = rig.model.requests[1];
  expect(JSON.stringify(request?.messages)).toContain(`blue ${rest} and that`);
  expect(request?.tools.length).toBeGreaterThan(10);
  expect(JSON.stringify(request).length / 4).toBeLessThan(8192);
});
