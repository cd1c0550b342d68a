// What a call costs where the vendor keeps what it has seen: from the second call on nearly all of the
// call before it is read from the cache, as the vendor counts it, in both dialects.

import { describe, expect, it } from 'vitest';
import { chatId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { callTools, type LlmRequest, say } from '../support/llm-server.ts';
import { createRig, type RigOptions } from './agent-rig.ts';
import { DIALECTS, type WireDialect, wireModels } from './wire-models.ts';

const PAGES_PER_ROUND = 12;
/** One less than allowed, so that the last call of a turn has a note on the rounds that remain. */
const ROUNDS = 4;
const SHARE = 0.9;

async function createCachedRig(dialect: WireDialect, options: RigOptions = {}) {
  const { server, models } = await wireModels(dialect, { countsInput: true });
  const look = {
    name: 'look',
    access: 'read' as const,
    run: async ({ page }: Readonly<Record<string, unknown>>) => `page ${page} of it `.repeat(20),
  };
  const readSkill = { name: 'read_skill', access: 'read' as const, run: async () => '' };
  const rig = await createRig({
    models,
    tools: [look, readSkill],
    settings: { maxToolIterations: ROUNDS + 1, maxSameCalls: 99 },
    ...options,
  });
  let rounds = 0;
  let pages = 0;
  const thoughts = { thinking: 'Which page?', signature: 'signed' };
  server.respond(({ toolResults, body }: LlmRequest) => {
    const thinks = body['thinking'] === undefined ? {} : thoughts;
    if (body['tools'] === undefined) return say('Decided: nothing. Facts: none.');
    if (toolResults.length > 0 && rounds % ROUNDS === 0)
      return { ...say('That is it.'), ...thinks };
    rounds += 1;
    const asked = Array.from({ length: PAGES_PER_ROUND }, () => {
      pages += 1;
      return { name: 'look', arguments: { page: pages } };
    });
    return { ...callTools(...asked), ...thinks };
  });
  let turn = 0;
  const ask = async (thinkingBudget = 0, more = '') => {
    turn += 1;
    await rig.clock.advance(7 * 60_000);
    const question = `question ${turn}: ${'what is on the next pages? '.repeat(8)}${more}`;
    await rig.run(rig.inputOf(turn, [question], { settings: { thinkingBudget } }));
  };
  /** Of each call but the first: what was read of the input of the call before. */
  const shares = async () => {
    const used = (await rig.transcript()).flatMap((entry) =>
      entry.role === 'assistant' && entry.usage !== undefined ? [entry.usage] : [],
    );
    return used.slice(1).map(({ cachedTokens }, index) => {
      return cachedTokens / (used[index]?.inputTokens ?? 0);
    });
  };
  return { rig, server, ask, shares };
}

describe.each(DIALECTS)('the cache of the %s dialect', (dialect) => {
  it('holds across rounds of tools, turns, minutes and a restart, and is lost once by a new day', async () => {
    const { rig, server, ask, shares } = await createCachedRig(dialect);
    await rig.write('AGENTS.md', 'Be kind. '.repeat(100));
    for (let turn = 1; turn <= 5; turn += 1) await ask();
    await rig.clock.advance(2 * 3_600_000);
    await rig.restart();
    await ask();
    const read = await shares();
    expect(read).toHaveLength(6 * (ROUNDS + 1) - 1);
    expect(read.filter((share) => share < SHARE)).toEqual([]);
    // A new file opens with less.
    await rig.clock.advance(30 * 3_600_000);
    await ask();
    expect((await shares()).filter((share) => share < SHARE)).toHaveLength(1);
    expect(JSON.stringify(server.requests[ROUNDS]?.body)).toContain('rounds of tool use remain');
    server.assertDone();
  });

  it('holds where a message names a skill, which stands once beside that message', async () => {
    const { rig, server, ask, shares } = await createCachedRig(dialect);
    const text = `---\ndescription: brews tea\n---\n${'Warm the pot first. '.repeat(60)}`;
    await rig.write('skills/tea-time/SKILL.md', text);
    await ask();
    for (let turn = 2; turn <= 4; turn += 1) await ask(0, 'Use the skill tea-time.');
    expect((await shares()).filter((share) => share < SHARE)).toEqual([]);
    const asked = JSON.stringify(server.requests.at(-1)?.body).split('[The skill tea-time, which');
    expect(asked).toHaveLength(2);
    expect(asked[1]).toMatch(
      /^ this message names: follow it\.\]\\nWarm the pot.*\[End of the skill/,
    );
    const [user] = (await rig.transcript()).filter((entry) => entry.role === 'user').slice(1);
    expect(user).toMatchObject({ text: expect.stringContaining('Warm the pot') });
    server.assertDone();
  });

  it('holds for the prompt of another chat', async () => {
    const { rig, server } = await createCachedRig(dialect);
    await rig.write('AGENTS.md', 'Be kind. '.repeat(1000));
    server.respond(() => say('Hello.'));
    await rig.run(rig.inputOf(1, ['Hello?']));
    const session = sessionKey('telegram:another');
    const chat = { ...rig.place[1], chat: chatId('another') };
    await rig.run(rig.inputOf(2, ['Hello?'], { session, chat, turnId: turnId(`${session}#2`) }));
    const answer = (await rig.sessions.load(session)).find(({ role }) => role === 'assistant');
    const { inputTokens = 0, cachedTokens = 0 } =
      answer?.role === 'assistant' ? (answer.usage ?? {}) : {};
    expect(cachedTokens / inputTokens).toBeGreaterThan(SHARE);
    server.assertDone();
  });

  it('is lost once where the conversation is summed up', async () => {
    const compaction = { watermarkTokens: 90_000, keepTokens: 500, summaryTokens: 200 };
    const { rig, server, ask, shares } = await createCachedRig(dialect, { compaction });
    for (let turn = 1; turn <= 3; turn += 1) await ask();
    await rig.agent.compact(rig.place[0], rig.inputOf(9, ['?']).messages[0].message, {});
    const before = (await shares()).length;
    await ask();
    await ask();
    const read = await shares();
    expect(read.slice(0, before).filter((share) => share < SHARE)).toEqual([]);
    expect(read.slice(before).filter((share) => share < SHARE)).toHaveLength(1);
    server.assertDone();
  });
});

it('of Anthropic holds while the model thinks, but for the thoughts of the turn before', async () => {
  const { server, ask, shares } = await createCachedRig('anthropic');
  for (let turn = 1; turn <= 3; turn += 1) await ask(2000);
  const read = await shares();
  const firstOfTurn = (index: number) => index % (ROUNDS + 1) === ROUNDS;
  expect(read.filter((share, index) => !firstOfTurn(index) && share < SHARE)).toEqual([]);
  // What stands before the thoughts: with so many results behind it that would be lost without its mark.
  expect(read.filter((_share, index) => firstOfTurn(index)).at(-1)).toBeGreaterThan(0.4);
  server.assertDone();
});
