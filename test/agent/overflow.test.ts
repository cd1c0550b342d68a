// A model whose window is much smaller than believed: what its provider refuses is summed up, so that
// the conversation goes on.

import { expect, it } from 'vitest';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { breaksOff, calls, says } from '../support/scripted-model.ts';
import { createRig } from './agent-rig.ts';

const TURNS = 12;

it('a conversation within all limits that the provider finds too long is summed up, not only cut', async () => {
  const rig = await createRig({ compaction: {} });
  for (let turn = 1; turn <= TURNS; turn += 1) {
    rig.model.script(says(`answer ${turn} ${'and so on. '.repeat(150)}`));
    await rig.ask(turn, `question ${turn}`);
  }
  const failure = { kind: 'context_overflow' } as const;
  const overflow = new ProviderError('too long', { failure, provider: 'test', model: 'scripted' });
  rig.model.script(breaksOff('', overflow), says('Decided: by train.'), says('thirteen'));
  expect((await rig.ask(TURNS + 1, 'question 13')).answers).toEqual(['thirteen']);
  const [first, ...rest] = rig.model.requests.at(-1)?.messages ?? [];
  expect(first?.text).toContain('by train');
  expect(rest.length).toBeLessThan(TURNS);
  rig.model.assertDone();
});

it('a turn that writes more than its window holds goes on: what its first calls were given is shortened', async () => {
  const writes: string[] = [];
  const rig = await createRig({
    contextTokens: 12_000,
    settings: { maxTokens: 2000 },
    tools: [
      {
        name: 'write_file',
        access: 'read',
        run: async ({ text }) => {
          writes.push(String(text));
          return 'written';
        },
      },
    ],
  });
  const files = Array.from({ length: 12 }, (_, n) => `file ${n} ${'and so on '.repeat(800)}`);
  rig.model.script(
    ...files.map((text) => calls([{ name: 'write_file', input: { text } }])),
    says('all written'),
  );
  expect((await rig.ask(1, 'write twelve files')).answers).toEqual(['all written']);
  expect(writes).toEqual(files);
  const { messages } = rig.model.requests.at(-1) ?? { messages: [] };
  const given = messages.flatMap((one) => (one.role === 'assistant' ? one.toolCalls : []));
  const texts = given.map((call): string => JSON.parse(call.arguments).text);
  expect(texts[0]).toMatch(/^file 0 .*truncated/s);
  expect(texts.at(-1)).toBe(files.at(-1));
  rig.model.assertDone();
});
