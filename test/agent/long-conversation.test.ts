// Hundreds of turns over the wire with a window of a few thousand tokens. The model knows nothing but what a
// request shows it: it can tell what was said in turn 1 only where that reaches it.

import { expect, it } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { callTools, fail, type LlmReply, type LlmRequest, say } from '../support/llm-server.ts';
import { createRig } from './agent-rig.ts';
import { type WireDialect, wireModels } from './wire-models.ts';

const TURNS = campaign({ short: 60, full: 300 });
const CONTEXT_TOKENS = 8000;
const CHATTER = 'I saw a heron by the canal and two boats, and it rained. '.repeat(3);

const isForSummary = ({ system }: LlmRequest) => system.startsWith('You keep the notes');

/** All words of the conversation that the request holds, the system prompt left out. */
const shownIn = ({ body }: LlmRequest) =>
  JSON.stringify((body['messages'] as { role: string }[]).filter(({ role }) => role !== 'system'));

const tokensOf = ({ body }: LlmRequest) => Math.ceil(JSON.stringify(body).length / 4);

/** Tells what it is shown, looks for what it is not shown, and sums up carelessly. */
function honest(request: LlmRequest, sumsUp: boolean): LlmReply {
  if (isForSummary(request)) return sumsUp ? say('Task: small talk about the weather.') : fail(500);
  const wanted = [...shownIn(request).matchAll(/What is my (\w+ code)\?/g)].at(-1)?.[1];
  if (wanted === undefined) return say(`Noted. ${CHATTER}`);
  const known = new RegExp(`my ${wanted} is ([A-Z]+-\\d+)`).exec(shownIn(request))?.[1];
  if (known !== undefined) return say(`It is ${known}.`);
  if (request.toolResults.length > 0) return say('I do not know.');
  return callTools({ name: 'read_earlier', arguments: { words: `my ${wanted} is` } });
}

async function create(dialect: WireDialect, sumsUp: boolean) {
  const { server, models } = await wireModels(dialect, {
    respond: (request) => ({
      ...honest(request, sumsUp),
      usage: { input: tokensOf(request), output: 60 },
    }),
  });
  const settings = { maxContextTokens: CONTEXT_TOKENS, maxTokens: 500 };
  const rig = await createRig({ models, settings, compaction: {}, readsEarlier: true });
  return { rig, server };
}

it.each([
  ['openai', 'a careless summary', true],
  ['anthropic', 'a careless summary', true],
  ['openai', 'no summary at all', false],
] as const)(
  `over %s and with %s, turn ${TURNS} still knows what was said in turn 1`,
  async (dialect, _, sumsUp) => {
    const { rig, server } = await create(dialect, sumsUp);
    await rig.ask(1, 'my locker code is KX-4711, and my garden code is QP-0815.');
    for (let turn = 2; turn < TURNS; turn += 1) {
      // Numbers without end, so that not all of them can stand in a summary.
      const reading = turn % 2 === 0 ? `Reading ${turn}: ${turn * 7919} litres. ` : '';
      await rig.ask(turn, `${reading}${CHATTER}`);
      await rig.clock.advance(5000);
      if (turn === 150) await rig.restart();
    }
    expect((await rig.ask(TURNS, 'What is my locker code?')).answers).toEqual(['It is KX-4711.']);
    expect((await rig.ask(TURNS + 1, 'What is my garden code?')).answers).toEqual([
      'It is QP-0815.',
    ]);
    const answering = server.requests.filter((request) => !isForSummary(request));
    const tokens = answering.map(tokensOf);
    expect(Math.max(...tokens)).toBeLessThan(CONTEXT_TOKENS);
    const summaries = server.requests.filter(isForSummary).length;
    expect(summaries).toBeGreaterThan(TURNS / 100);
    expect(summaries).toBeLessThan(40);
    const lookedUp = answering.filter(({ toolResults }) => toolResults.length > 0).length;
    if (!sumsUp) expect(lookedUp).toBeGreaterThan(0);
    // The server refuses whatever its dialect would refuse.
    expect(server.takeComplaints()).toEqual([]);
    const said = (await rig.transcript()).filter(({ role }) => role === 'user');
    expect(said).toHaveLength(TURNS + 1);
  },
);
