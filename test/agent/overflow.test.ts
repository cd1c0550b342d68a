// A model whose window is much smaller than believed: what its provider refuses is summed up, so that
// the conversation goes on.

import { expect, it } from 'vitest';
import { ProviderError } from '../../src/core/errors.ts';
import { breaksOff, says } from '../support/scripted-model.ts';
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
