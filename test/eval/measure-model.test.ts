// What measuring a model counts, with a model and a clock that a test moves.

import { expect, it } from 'vitest';
import { callId } from '../../src/kernel/message/ids.ts';
import { measureModel } from '../../src/labs/tune/build-tune.ts';
import type { CallMeter, ModelHandle } from '../../src/providers/provider.ts';
import { capabilitiesOf } from '../../src/providers/rules/model-names.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const WAIT_MS = 60_000;
const FIRST_MS = 500;
const REST_MS = 2000;
const FREE: CallMeter = {
  about: { role: 'eval' },
  begin: async (_model, _signal) => ({ maxTokens: 1024, end: () => undefined }),
};

it('leaves out the wait for a place, counts the speed behind the first piece, and takes one call for one', async () => {
  const clock = createMovableClock();
  const weather = { name: 'get_weather', arguments: '{"city":"Oslo"}' };
  const handle: ModelHandle = {
    ...{ name: 'ollama/slow', contextTokens: 8192, local: true, vision: false },
    capabilities: capabilitiesOf({ name: 'ollama/slow', local: true, overrides: [] }),
    async *stream({ tools }, signal, meter) {
      await clock.advance(WAIT_MS);
      await meter?.begin('ollama/slow', signal, { waitedMs: WAIT_MS });
      await clock.advance(FIRST_MS);
      yield { type: 'text', delta: 'So' };
      await clock.advance(REST_MS);
      const twice = ['a', 'b'].map((id) => ({ id: callId(id), ...weather }));
      yield {
        type: 'finished',
        ...{ model: 'ollama/slow', text: 'So it is.', thinking: [], stop: 'end' },
        toolCalls: tools.length === 0 ? [] : twice,
        usage: { inputTokens: 10, outputTokens: 40, cachedTokens: 0 },
      };
    },
  };
  const deps = { handle, clock, meter: () => FREE, progress: () => undefined };
  expect(await measureModel(deps, new AbortController().signal)).toMatchObject({
    ...{ firstTokenMs: FIRST_MS, tokensPerSecond: 20, toolSuccess: 0, overflowRate: 1 },
  });
});
