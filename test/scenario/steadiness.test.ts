// A small local model kept on its course in the whole program: an answer without end is broken off on
// the wire and in the figures, the same words of a service's model are let be, and a helper at work
// reaches the turn that asked, and no other one.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type LlmReply, type LlmRequest, say, startLlmServer } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 920;
const OTHER = 921;
const LOOP = 'Is there anything else that I can do for you today, my friend? ';

const FILLER =
  'Well, okay, so, basically, I think, you know, it is actually just really very simple, honestly, of course, and I mean, sure, well, okay, that is it, you know.';

const reported = Promise.withResolvers<void>();
const subagentMayEnd = Promise.withResolvers<void>();

const list = { name: 'list_dir', arguments: { path: '.' } };
const REPORT = 'reports something it considers critical';
const isSubagent = ({ body }: LlmRequest) => JSON.stringify(body).includes('[Task for a subagent');

function reply(request: LlmRequest): LlmReply {
  const { lastUserText: text, toolResults } = request;
  if (isSubagent(request)) {
    if (toolResults.length === 0) {
      const said = 'CRITICAL: the disk is nearly full, stop writing\n';
      return { chunks: ['I look.\n', said, said], toolCalls: [list] };
    }
    reported.resolve();
    return { gate: subagentMayEnd.promise, chunks: ['RESULT-helper'] };
  }
  if (text.includes('has ended')) return { chunks: ['nonce-ended'] };
  if (text.includes(REPORT)) return { chunks: ['nonce-warned'] };
  const chatter = /chatter (\w)$/.exec(text)?.[1];
  if (chatter !== undefined) return { chunks: [`${FILLER}\n\nnonce-chatter-${chatter}`] };
  if (text.includes('again and again')) return { chunks: [LOOP], fault: { kind: 'endless' } };
  if (!text.includes('tidy up')) return { chunks: ['nonce-small-talk'] };
  if (toolResults.length > 0) return { gate: reported.promise, toolCalls: [list] };
  return { toolCalls: [{ name: 'spawn', arguments: { action: 'spawn', task: 'Count files.' } }] };
}

const TIMES = 50;
const local = await startLlmServer({ respond: reply, models: ['qwen3:8b'] });
const world = await startTelegramWorld({
  respond: () => say(LOOP.repeat(TIMES)),
  config: {
    agents: {
      defaults: { model: 'ollama/qwen3:8b' },
      antiDrift: { enabled: 'auto' },
      proprioception: { enabled: true },
    },
    localModels: { places: { ollama: 8 } },
    providers: { ollama: { apiBase: local.openaiBase } },
  },
  channel: { allowFrom: [`${PERSON}`, `${OTHER}`] },
});
const { telegram, home, texts } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await local[Symbol.asyncDispose]();
});

const hears = async (like: RegExp, chat = PERSON) => (await world.hears(chat, like)).text;

it('an endless answer is broken off, asked for once more, cut, and measured; /status says what is on', async () => {
  telegram.say(PERSON, 'say it again and again');
  const answer = await hears(/and was stopped/);
  expect(answer.split(LOOP.trim()).length).toBeLessThan(4);
  const calls = local.requests.filter(({ lastUserText }) =>
    lastUserText.includes('again and again'),
  );
  expect(calls).toHaveLength(2);
  await Promise.all(calls.map(({ abandoned }) => abandoned));
  const drifts = async () => {
    const lines = (await readFile(join(home.path, 'metrics.jsonl'), 'utf8')).trim().split('\n');
    return lines.map((line) => JSON.parse(line)).filter(({ role }) => role === 'turn');
  };
  const looped = { status: 'cancelled', anti_drift_score: 0.6, anti_drift_signals: ['loop'] };
  await expect.poll(drifts).toMatchObject([looped, looped]);
  for (const n of 'abcdef') {
    telegram.say(PERSON, `chatter ${n}`);
    await hears(new RegExp(`nonce-chatter-${n}`));
  }
  telegram.say(PERSON, '/context');
  expect(await hears(/Model's? context|Limit:/)).toContain('Shortened or left out: 1 ');
  telegram.say(PERSON, '/status');
  const status = await hears(/Anti-drift/);
  expect(status).toContain('Anti-drift: small and medium local models');
  expect(status).toContain('Proprioception: a note every 8 rounds; critical reports of subagents');

  await world.asks(OTHER, '/model openai/sim-1', /From the next message on/);
  const whole = await world.asks(OTHER, 'say it again and again', /anything else/);
  expect(whole.split(LOOP.trim())).toHaveLength(TIMES + 1);
  expect(world.model.requests).toHaveLength(1);
  await world.asks(OTHER, '/model default', /again\./);
});

it('what a helper at work holds for critical joins the running turn of whoever asked, once', async () => {
  telegram.say(PERSON, 'tidy up');
  await hears(/nonce-warned/);
  telegram.say(OTHER, 'hello');
  await hears(/nonce-small-talk/, OTHER);
  subagentMayEnd.resolve();
  await hears(/nonce-ended/);
  // One answer to both: it joined the turn that ran.
  expect(texts(PERSON).slice(-2)).toEqual(['nonce-warned', 'nonce-ended']);
  const told = local.requests.filter(({ body }) => JSON.stringify(body).includes(REPORT));
  const turns = told.filter(({ lastUserText }) => !lastUserText.includes('has ended'));
  expect(turns).toHaveLength(1);
  const [turn] = turns;
  expect(turn?.lastUserText).toContain('the disk is nearly full, stop writing');
  expect(turn?.lastUserText.split('nearly full')).toHaveLength(2);
  const helper = local.requests.find(isSubagent);
  expect(helper?.lastUserText).toContain('begins with "CRITICAL: "');
  const others = local.requests.filter(({ lastUserText }) => lastUserText.includes('hello'));
  expect(JSON.stringify(others)).not.toContain('nearly full');
});
