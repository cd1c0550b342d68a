// Turns of a model that cannot call tools, over the real provider and a server that refuses every
// trace of a tool: to the agent it is a model like any other.

import { describe, expect, it, onTestFinished } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createLocalSites } from '../../src/providers/local-site.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { type LlmReply, type LlmRequest, say, startLlmServer } from '../support/llm-server.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { createRig } from './agent-rig.ts';
import { notingTools } from './wire-models.ts';

const MODEL = 'ollama/gemma3:4b';

async function createTextRig() {
  const server = await startLlmServer({ template: 'no tools' });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const config = configSchema.parse({
    agents: { defaults: { model: MODEL } },
    providers: { ollama: { apiBase: server.openaiBase } },
    retry: { providerAttempts: 0 },
  });
  const clock = createMovableClock();
  const models = createModelRegistry({
    ...{ config, env: {}, clock, log: silentLogger, random: () => 0.5 },
    // A call that was killed in this process keeps its place.
    sites: createLocalSites({ clock, places: () => 9 }),
  });
  const { ran, tools } = notingTools();
  return { rig: await createRig({ models, tools }), server, ran };
}

const call = (tool: string) => JSON.stringify({ tool, args: {} });
const done = (response: string) => say(JSON.stringify({ done: true, response }));

/** Looks and pays, then posts, then says that it is done. */
function threeRounds({ lastUserText }: LlmRequest): LlmReply {
  if (!lastUserText.includes('tool_result')) return say(`${call('look')}\n${call('pay')}`);
  return lastUserText.includes('look done') ? say(call('post')) : done('Done.');
}

describe('a model without tool calling', () => {
  it('calls tools, and a kill at any event costs neither the answer nor a second effect', async () => {
    for (let killAt = 1; killAt <= 12; killAt += 1) {
      const { rig, server, ran } = await createTextRig();
      server.respond(threeRounds);
      const context = await rig.agent.prepare(...rig.place);
      const turn = rig.agent.run(rig.inputOf(1, ['go']), context, new AbortController().signal);
      for (let event = 0; event < killAt; event += 1) await turn.next();
      await rig.restart();
      const outcome = await rig.ask(1, 'go');
      expect(outcome).toMatchObject({ kind: 'answered', answers: ['Done.'] });
      expect(ran.filter((name) => name === 'pay').length).toBeLessThanOrEqual(1);
      expect(ran.filter((name) => name === 'post').length).toBeLessThanOrEqual(1);
      server.assertDone();
    }
  });

  it('is corrected in sight of the person, who never sees its JSON', async () => {
    const { rig, server } = await createTextRig();
    const chunks = ['{"done": true, "resp', 'onse": "It is ', 'paid **now**.', '"}'];
    server.script(say('{"tool": "look"}'), say(`I look.\n${call('look')}`), { chunks });
    const context = await rig.agent.prepare(...rig.place);
    const turn = rig.agent.run(rig.inputOf(1, ['is it paid?']), context, AbortSignal.any([]));
    const told: string[] = [];
    let step = await turn.next();
    for (; step.done !== true; step = await turn.next()) {
      if (step.value.type === 'text_delta') told.push(step.value.text);
      if (step.value.type === 'notice') told.push(step.value.text);
    }
    expect(step.value).toMatchObject({ kind: 'answered' });
    const [correction, ...shown] = told;
    expect(correction).toBe('The model did not use the format for tool calls.');
    expect(shown.join('')).toBe('I look.\nIt is paid **now**.');
    server.assertDone();
  });

  it('is never asked with more than 85 % of its window: what was said long ago goes first', async () => {
    const { rig, server } = await createTextRig();
    // Twice as long where they stand in JSON.
    const quotes = '"'.repeat(22_000);
    server.respond(({ lastUserText }) => done(lastUserText.includes('more') ? quotes : 'Yes.'));
    for (const turn of [1, 2, 3]) await rig.ask(turn, `more of it, ${turn}`);
    expect(await rig.ask(4, 'is that all?')).toMatchObject({ kind: 'answered', answers: ['Yes.'] });
    const sizes = server.requests.map(({ body }) => {
      const messages = body['messages'] as { content: string }[];
      return messages.reduce((sum, { content }) => sum + content.length, 0);
    });
    expect(Math.max(...sizes)).toBeGreaterThan(60_000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32_768 * 4 * 0.8);
    server.assertDone();
  });
});
