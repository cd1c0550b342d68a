// SpawnSubagents through the whole program: started in words, bounded, ended, and reporting once each, whatever
// becomes of the process.

import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PROFILES = join(import.meta.dirname, '../../workspace/profiles');
const OWNER = 700;
const POOR = 701;
const GUEST = 702;
const TASK = '[Task for a subagent';
const END = '[A subagent you started has ended';

const gates = new Map<string, PromiseWithResolvers<void>>();

const gate = (name: string) => {
  const known = gates.get(name) ?? Promise.withResolvers<void>();
  gates.set(name, known);
  return known;
};
const open = (name: string) => gate(name).resolve();

/** Of a person: calls what it is told to. Of a helper: does what the last line of its task says. */
function reply({ lastUserText: text, toolResults }: LlmRequest): LlmReply {
  if (text.includes(END)) {
    const results = text.match(
      /RESULT-[a-z]+|you have no tool \w+|it ends when you do|Created \S+/g,
    ) ?? ['nothing'];
    return { chunks: [`Told: ${results.join(' ')}`] };
  }
  if (text.startsWith('[An owner allowed')) return { chunks: ['RESULT-allowed'] };
  if (toolResults.length > 0) return { chunks: toolResults.map((result) => `${result.text}\n`) };
  if (text.includes(TASK)) return helper(text);
  const calls = [...text.matchAll(/CALL (\w+) (\{.*\})/g)].map(([, name = '', json = '{}']) => ({
    ...{ name, arguments: JSON.parse(json) },
  }));
  const usage = text.includes('DEAR') ? { usage: { input: 90_000, output: 10 } } : {};
  return calls.length === 0 ? { chunks: ['Nothing to do.'] } : { toolCalls: calls, ...usage };
}

function helper(text: string): LlmReply {
  const [, name = '', rest = ''] = /\nDO (\w+) ?(.*)/.exec(text) ?? [];
  if (name === 'write') return call('write_file', { path: rest, content: 'by a helper' });
  if (name === 'nest') return call('spawn', { action: 'spawn', task: 'DO hold deep' });
  if (name === 'run') return call('exec', { argv: ['touch', rest] });
  if (name === 'vote')
    return {
      chunks: [['**Blue**', 'red.', 'blue', 'Blue.'][tasks('DO vote').length - 1] ?? 'blue'],
    };
  if (name === 'loop') {
    const isOver = tasks('DO loop').length === 3;
    return { chunks: [isOver ? 'RESULT-loop\n\nALL-GOOD' : 'not done: ALL-GOOD comes later'] };
  }
  return { gate: gate(rest).promise, chunks: [`RESULT-${rest}`] };
}

const call = (name: string, args: object): LlmReply => ({
  toolCalls: [{ name, arguments: { ...args } }],
});
const configOf = ({ maxDepth }: { readonly maxDepth: number }) => ({
  agents: {
    defaults: { model: 'openai/sim-1', maxTokens: 500 },
    subagents: { maxPerParent: 3, maxDepth },
  },
  tools: { approvals: { owner: 'strict' as const } },
  limits: { exceptions: [{ who: `telegram:${POOR}`, tokensPerDay: 80_000 }] },
});
const shipped = readdirSync(PROFILES).map((name) => [
  `profiles/${name}`,
  readFileSync(join(PROFILES, name), 'utf8'),
]);

const world = await startTelegramWorld({
  respond: reply,
  config: configOf({ maxDepth: 1 }),
  channel: { streaming: false, allowFrom: [`${POOR}`] },
  files: {
    ...Object.fromEntries(shipped),
    'profiles/broken.yaml': 'description: x\nprompt: y\nlimits: {rounds: many}\n',
  },
  pair: { [OWNER]: 'owner', [GUEST]: 'guest' },
});
const { telegram, model, texts, file, nanobot } = world;
afterAll(() => world[Symbol.asyncDispose]());

const hears = (pattern: RegExp, chat = OWNER) => world.hears(chat, pattern);
const answerTo = (words: string, like: RegExp, chat = OWNER) => world.asks(chat, words, like);
const asked = (words: string) =>
  model.requests.filter(({ lastUserText }) => lastUserText.includes(words));
/** What helpers were told. */
const tasks = (words: string) =>
  asked(words).filter(({ lastUserText }) => lastUserText.includes(TASK));
const told = (name: string) =>
  texts(OWNER).filter((text) => new RegExp(`^Told:.*RESULT-${name}`).test(text));
const calling = (args: object) => `CALL spawn ${JSON.stringify(args)}`;
const task = (words: string, more: object = {}) => ({ action: 'spawn', task: words, ...more });
/** A request like this came. */
async function until(fits: (request: LlmRequest) => boolean): Promise<LlmRequest> {
  for (;;) {
    const found = model.requests.find(fits);
    if (found !== undefined) return found;
    await model.received(model.requests.length + 1);
  }
}
const asks = (words: string) =>
  until(({ lastUserText }) => lastUserText.includes(TASK) && lastUserText.includes(words));

it('work side by side while the person talks on, and what each found is told when it has ended', async () => {
  telegram.say(OWNER, ['one', 'two'].map((name) => calling(task(`DO hold ${name}`))).join('\n'));
  await hears(/Started: h\w+ DO hold one.*\n*.*Started: h\w+ DO hold two/s);
  await Promise.all([asks('DO hold one'), asks('DO hold two')]);
  await answerTo('/agents', /DO hold two \(task\): running for \d+ s.*\n.*DO hold one/);
  await answerTo('/status', /Subagents running: 2 \(see \/agents\)/);
  expect(JSON.stringify(tasks('DO hold one')[0]?.body)).not.toContain('CALL spawn');
  open('two');
  await hears(/^Told: RESULT-two$/);
  expect(told('one')).toEqual([]);
  open('one');
  await hears(/^Told: RESULT-one$/);

  await answerTo(calling(task('DO hold waited')), /^Started/);
  telegram.say(OWNER, calling({ action: 'wait', seconds: 20 }));
  await until(({ lastUserText }) => lastUserText.includes('"wait"'));
  open('waited');
  await hears(/RESULT-waited/);
  await answerTo(calling({ action: 'wait' }), /No subagent of this conversation is running/);
});

it('are held to number, depth, profile and the rights of who asks, and are paid by them', async () => {
  for (const name of ['a', 'b', 'c']) await answerTo(calling(task(`DO hold x${name}`)), /^Started/);
  await answerTo(
    calling(task('DO hold xd')),
    /3 subagents of this conversation are running, the maximum/,
  );
  for (const name of ['xa', 'xb', 'xc']) {
    open(name);
    await hears(new RegExp(`^Told:.*RESULT-${name}`));
  }
  await answerTo(calling(task('DO nest')), /^Told: you have no tool spawn/);
  const nesting = tasks('DO nest')[0];
  expect(nesting?.tools).toContain('write_file');
  for (const tool of ['spawn', 'message', 'send_file', 'cron', 'ask_user'])
    expect(nesting?.tools).not.toContain(tool);

  await answerTo(calling(task('DO write free.txt')), /^Told: Created free.txt/);
  expect(await readFile(file('free.txt'), 'utf8')).toBe('by a helper');
  const tied = task('DO write tied.txt', { profile: 'reviewer' });
  await answerTo(calling(tied), /^Told: you have no tool write_file/);
  expect(tasks('tied.txt').at(-1)?.lastUserText).toContain('You check work');
  await answerTo(
    calling(task('x', { profile: 'broken' })),
    /limits\.rounds: "many" does not fit; write a whole number from 1 to 1000/,
  );
  await answerTo(
    calling(task('x', { profile: 'nobody' })),
    /There is no profile "nobody"; there are .*quick, researcher, reviewer/,
  );

  // What needs a yes is asked for it; what came of that is told too.
  await answerTo(calling(task('DO run asked.txt')), /touch .*Asked by a subagent/s);
  telegram.press(OWNER, OWNER, 'Allow once');
  await hears(/^Told:.*RESULT-allowed/);
  expect(await readFile(file('asked.txt'), 'utf8')).toBe('');

  await answerTo(calling(task('DO hold guest')), /Permission denied/, GUEST);
  expect(tasks('DO hold guest')).toEqual([]);
  await answerTo('/agents', /^Only my owner can do that\.$/, GUEST);

  telegram.say(POOR, `DEAR ${calling(task('DO hold poor'))}`);
  await hears(/used up/, POOR);
  const listed = await nanobot('agents', 'list');
  expect(listed).toMatch(/profile researcher: Reads pages/);
  expect(listed).toMatch(/profile broken: cannot be used: limits.rounds/);
  await expect
    .poll(() => nanobot('agents', 'list'))
    .toMatch(/DO hold poor \(task\): failed after .*\[.+ \(telegram:701\)\]/);
  expect(await answerTo('/agents', /DO hold poor/, POOR)).not.toContain('hold one');
});

it('end when the agent, the person or /stop says so, and are not heard of after that', async () => {
  const names = ['ka', 'kb', 'kc'];
  telegram.say(OWNER, names.map((name) => calling(task(`DO hold ${name}`))).join('\n'));
  const held = await Promise.all(names.map((name) => asks(`DO hold ${name}`)));
  await hears(/Started:.*DO hold kc/s);
  const lines = await answerTo('/agents', /running/);
  const idOf = (name: string) => new RegExp(`(h\\w+) DO hold ${name}`).exec(lines)?.[1] ?? '';
  await answerTo(calling({ action: 'cancel', id: idOf('ka') }), /^Ended: .*cancelled/);
  await held[0]?.abandoned;
  telegram.say(OWNER, `/kill ${idOf('kb')}`);
  await hears(/^Stopped: DO hold kb/);
  await hears(/^The subagent "DO hold kb" \(h\w+\) was stopped by a person/);
  await held[1]?.abandoned;
  // What is not confirmed yet it would stop too.
  await world.hasNo('outbound');
  await answerTo('/stop', /^Stopped\. 1 subagent stopped with it\.$/);
  await held[2]?.abandoned;
  for (const name of names) open(name);
  await answerTo(calling({ action: 'list' }), /kc \(task\): cancelled/);
  for (const name of names) expect(told(name)).toEqual([]);
});

it('a pipeline votes, a loop stops at its condition alone, and over a kill each part is asked once', async () => {
  const steps = [{ prompt: 'DO vote', ahead_by: 2 }, { prompt: 'DO hold late' }];
  const pipeline = { action: 'pipeline', id: 'colours', steps };
  const loop = { action: 'loop', task: 'DO loop', until_line: 'ALL-GOOD', rounds: 4 };
  telegram.say(OWNER, [pipeline, loop].map(calling).join('\n'));
  await hears(/^Told: RESULT-loop$/);
  expect(tasks('DO loop')).toHaveLength(3);
  telegram.say(OWNER, calling(task('DO hold alone')));
  await Promise.all([asks('Your step, 2 of 2:\nDO hold late'), asks('DO hold alone')]);
  await world.gateway.kill();
  await world.configure(configOf({ maxDepth: 2 }));
  open('late');
  open('alone');
  await world.start();
  await hears(/^Told:.*RESULT-late/);
  await hears(/^Told:.*RESULT-alone/);
  const votes = tasks('Your step, 1 of 2');
  expect(votes).toHaveLength(4);
  expect(tasks('Your step, 2 of 2')[0]?.lastUserText).toContain('Result of step 1:\n**Blue**');
  await answerTo(calling(pipeline), /It is already done.*RESULT-late/s);
  expect(tasks('Your step, 2 of 2').length).toBeLessThanOrEqual(2);
  expect([told('late').length, told('alone').length]).toEqual([1, 1]);

  // Now helpers may start helpers, which end with them.
  await answerTo(calling(task('DO nest')), /^Told: it ends when you do/);
  await answerTo('/agents', /DO hold deep \(task\): cancelled .*\[subagent:h/);
  expect(texts(OWNER).filter((text) => text.includes('RESULT-deep'))).toEqual([]);
});
