// Models of one's own on two servers at once: one that knows no tools at all and one that prints its
// calls. Both work with tools like any model, and the person sees none of it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { say, startLlmServer } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 910;

const inText = await startLlmServer({ template: 'no tools', models: ['gemma3:4b'] });
const printing = await startLlmServer({ models: ['qwen3-8b'] });
const world = await startTelegramWorld({
  channel: { allowFrom: [`${PERSON}`] },
  config: {
    agents: { defaults: { model: 'ollama/gemma3:4b' } },
    providers: {
      ollama: { apiBase: inText.openaiBase },
      lmstudio: { apiBase: printing.openaiBase },
    },
  },
});
const { telegram, home } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await inText[Symbol.asyncDispose]();
  await printing[Symbol.asyncDispose]();
});

const bot = () => {
  const { messages, deleted } = telegram.chat(PERSON);
  return [...messages, ...deleted].filter(({ from }) => from === 'bot').map(({ text }) => text);
};
const hears = (pattern: RegExp) => telegram.waitFor(() => bot().find((text) => pattern.test(text)));
const json = (value: unknown) => say(JSON.stringify(value));

describe('tools in text', () => {
  it('a model without tool calling makes a plan, is corrected, and answers', async () => {
    const steps = ['Buy paint', 'Paint'].map((text) => ({ text, status: 'pending' }));
    inText.script(
      json({ tool: 'plan' }),
      json({ tool: 'plan', args: { goal: ['Paint', 'the house'], steps } }),
      json({ done: true, response: 'Planned **both** nonce-planned' }),
    );
    telegram.say(PERSON, 'the house wants painting');
    await hears(/Planned both nonce-planned/);
    expect(await hears(/Buy paint/)).toContain('Paint\nthe house (0 of 2)');
    inText.assertDone();
    const calls = async () => {
      const lines = (await readFile(join(home.path, 'metrics.jsonl'), 'utf8')).split('\n');
      return lines.filter((line) => line.includes('gemma3:4b'));
    };
    await expect.poll(calls).toHaveLength(3);
  });

  it('a model on another server that prints its calls goes on in the same conversation', async () => {
    telegram.say(PERSON, '/model lmstudio/qwen3-8b');
    await hears(/lmstudio\/qwen3-8b/);
    const call = '<function=time>\n<parameter=zones>\nAsia/Tokyo\n</parameter>\n</function>';
    printing.script(say(`I look.\n<tool_call>\n${call}\n</tool_call>`), ({ toolResults }) =>
      say(`${toolResults[0]?.text} nonce-told`),
    );
    telegram.say(PERSON, 'how late is it there?');
    expect(await hears(/nonce-told/)).toContain('Tokyo');
    printing.assertDone();
    expect(JSON.stringify(printing.requests[0]?.body)).toContain('Planned **both**');
    expect(bot().filter((text) => /tool_|function|\{"/.test(text))).toEqual([]);
  });
});
