// A long task: its checklist changes in place, the model is reminded of it in later turns, and what it
// marked survives a summary and a kill: the whole program, seen from Telegram and from the model.

import { afterAll, describe, expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 820;

const world = await startTelegramWorld({
  respond: echo,
  channel: { streaming: true, allowFrom: [`${PERSON}`] },
});
const { telegram, model, lastBody } = world;
afterAll(() => world[Symbol.asyncDispose]());

const bot = () => world.bot(PERSON);
/** Until the turn has ended too: what is said next would join one whose draft shows its answer. */
async function hears(pattern: RegExp) {
  const seen = await world.hears(PERSON, pattern);
  await world.hasNo('running', 'outbound');
  return seen;
}
const planOf = (...states: readonly string[]) => ({
  name: 'plan',
  arguments: {
    goal: 'Paint the house',
    steps: ['Buy paint', 'Paint', 'Clean up'].map((text, index) => ({
      ...{ text, status: states[index] },
      ...(index === 0 ? {} : { after: [index] }),
    })),
  },
});

describe('a plan', () => {
  it('is one checklist that changes in place, and the model is reminded of it', async () => {
    model.script(
      { toolCalls: [planOf('doing', 'done', 'pending')] },
      { toolCalls: [planOf('doing', 'pending', 'pending')] },
      { chunks: ['nonce-begun'] },
    );
    telegram.say(PERSON, 'paint the house');
    await hears(/nonce-begun/);
    expect(JSON.stringify(model.requests[1]?.body)).toContain('step 2 is done, but step 1');
    const list = await hears(/▶ Buy paint/);
    expect(list.text).toContain('Paint the house (0 of 3)');
    model.script(
      { toolCalls: [planOf('done', 'doing', 'pending')] },
      { chunks: ['nonce-painting'] },
    );
    telegram.say(PERSON, 'go on');
    await hears(/nonce-painting/);
    expect(JSON.stringify(model.requests.at(-2)?.body)).toContain('1. doing: Buy paint');
    const changed = await hears(/☑ Buy paint\n.*▶ Paint/);
    expect(changed.id).toBe(list.id);
    expect(bot().filter(({ text }) => text.includes('Paint the house'))).toHaveLength(1);
  });

  it('and what was marked outlive a kill, and end with /new', async () => {
    const mark = { done: 'Paint is blue RAL-5010', open: 'the door' };
    model.script(
      { toolCalls: [{ name: 'checkpoint', arguments: mark }] },
      { chunks: ['nonce-marked'] },
    );
    telegram.say(PERSON, 'remember how far we are');
    await hears(/nonce-marked/);
    await world.restart();
    telegram.say(PERSON, 'and? nonce-and');
    await hears(/nonce-and/);
    expect(lastBody()).toContain('Checkpoint. Done: Paint is blue RAL-5010 Open: the door');
    expect(lastBody()).toContain('2. doing: Paint (after 1)');
    model.script(
      { toolCalls: [planOf('done', 'done', 'doing')] },
      { toolCalls: [{ name: 'backtrack', arguments: { reason: 'the blue peels off' } }] },
      { chunks: ['nonce-back'] },
    );
    telegram.say(PERSON, 'paint the door, then clean up');
    await hears(/nonce-back/);
    expect(lastBody()).toContain('What tools did since then is not undone.');
    await telegram.waitFor(() => bot().find(({ text }) => /▶ Paint\n.*☐ Clean up/.test(text)));
    telegram.say(PERSON, 'so? nonce-so');
    await hears(/nonce-so/);
    expect(lastBody()).toContain('Open: the door Given up from here: the blue peels off');
    expect(lastBody()).toContain('2. doing: Paint (after 1)');
    telegram.say(PERSON, '/new');
    await hears(/New conversation/);
    telegram.say(PERSON, 'hello nonce-new');
    await hears(/nonce-new/);
    expect(lastBody()).not.toMatch(/RAL-5010|Paint the house/);
  });
});
