// Several models share the work of a turn: a router, a specialist, a runner of results and the main model,
// each on a server of its own, through the whole program and a real chat.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  callTools,
  fail,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 900;
const SECRET = 'router-key-5f1c77';
const LONG = Array.from({ length: 200 }, (_, row) => `row ${row}: https://a.example/${row}`).join(
  '\n',
);

const ROLES = [
  ...['router', 'specialist', 'tool_runner', 'probe', 'turn'],
  ...['supervisor', 'specialist:guardian', 'specialist:scout'],
];

let isRouterDown = false;
let isGuardianStuck = false;

const HEALTH = '━━━ 🛡️ HEALTH ━━━\n✅ alpha   1.5\n⚠️ bêta   -3.0\n━━━━━━━━━━━━━━━━';
const DECLARED = {
  'agents/guardian.yaml':
    'description: Watches hosts.\nmodel: groq/sim-specialist\ntools: [read_file]\n',
  'agents/scout.yaml': 'description: Compares.\nmodel: openrouter/sim-runner\noutput: material\n',
  'prompts/guardian/system.md': 'You are the guardian.',
  'prompts/scout/system.md': 'You are the scout.',
};
const SWITCHED_OFF = Object.fromEntries(
  ['analyst', 'researcher', 'reviewer', 'writer'].map((name) => [
    `agents/${name}.yaml`,
    'description: Not here.\nenabled: false\n',
  ]),
);

const decision = (action: string, target = '', args = {}): LlmReply =>
  callTools({ name: 'route_decision', arguments: { action, target, args, confidence: 0.9 } });

/** A service, two specialists, and the end; or one of them again and again. */
function supervise(text: string): LlmReply {
  const next = (name: string, instructions = '') =>
    say(`Surely: ${JSON.stringify({ next: name, instructions, reasoning: 'r' })}`);
  const given = text.split('<agent_response>').length;
  if (text.includes('go on forever')) return next('guardian', `try ${given}`);
  if (!text.includes('hosts')) return next('FINISH');
  if (!text.includes('<service_message>')) return next('recall', 'hosts');
  if (given === 1) return next('guardian', 'Check hosts.md.');
  return given === 2 ? next('scout', 'Compare with last week.') : next('FINISH');
}

/** Reads the file, and hangs once where it is told to. */
function guard({ system, toolResults, tools }: LlmRequest): LlmReply {
  if (!system.includes('guardian')) return say('The sum is 42.');
  if (toolResults.length === 0 && tools.length > 0)
    return callTools({ name: 'read_file', arguments: { path: 'hosts.md' } });
  if (isGuardianStuck) return { fault: { kind: 'hang' } };
  return say(HEALTH);
}

/** Decides by the words of the person, once; then the main model is to answer. */
function route({ lastUserText, system }: LlmRequest): LlmReply {
  if (isRouterDown) return fail(503);
  if (system.includes('You are the supervisor')) return supervise(lastUserText);
  const text = lastUserText.slice(lastUserText.indexOf('The person says now:'));
  if (text.includes('Done in this turn:')) return decision('respond');
  if (text.includes('note')) return decision('tool', 'read_file', { path: 'note.md' });
  if (text.includes('sum')) return decision('specialist', 'sums', { task: `Add: ${SECRET}` });
  if (text.includes('start a helper')) return decision('subagent', '', { task: 'HELP quietly' });
  if (text.includes('which')) return decision('ask_user', '', { question: 'Red or blue?' });
  return decision('respond');
}

function answer({ lastUserText: text, toolResults, tools, system }: LlmRequest): LlmReply {
  if (system.includes('specialist_output')) return say('In short:\n\n[[output 1]]\n\nMind bêta.');
  if (text.includes('HELP quietly')) return say('HELPED');
  if (text.includes('delegate') && toolResults.length === 0) {
    return callTools({ name: 'read_file', arguments: { path: 'long.txt' } });
  }
  const seen = toolResults.map((result) => result.text.slice(0, 400)).join(' ');
  return say(`main(${tools.includes('list_dir') ? 'tools' : 'writes'}): ${seen || text}`);
}

const router = await startLlmServer({ respond: route });
const specialist = await startLlmServer({ respond: guard });
const runner = await startLlmServer({
  respond: ({ system }) =>
    say(system.includes('scout') ? 'No change.' : '200 rows, each with an address.'),
});
const server = (base: LlmServer, apiKey: string) => ({ apiKey, apiBase: base.openaiBase });

const world = await startTelegramWorld({
  respond: answer,
  config: {
    agents: {
      defaults: { model: 'openai/sim-main' },
      mode: 'trio',
      trio: {
        router: { model: 'deepseek/sim-router' },
        specialist: { model: 'groq/sim-specialist' },
        trace: true,
      },
      delegation: { model: 'openrouter/sim-runner' },
      supervisor: { model: 'deepseek/sim-router', maxSteps: 3 },
      circuit: { probeSecs: 1 },
    },
    providers: {
      deepseek: server(router, SECRET),
      groq: server(specialist, 'specialist-key'),
      openrouter: server(runner, 'runner-key'),
    },
  },
  channel: { streaming: false },
  files: { 'hosts.md': 'alpha, bêta', 'note.md': 'NOTE-7', 'long.txt': LONG },
  pair: { [OWNER]: 'owner' },
});
const { telegram, model: main, home } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  for (const each of [router, specialist, runner]) await each[Symbol.asyncDispose]();
});

const texts = () => world.texts(OWNER);
const says = (words: string, like: RegExp) => world.asks(OWNER, words, like);
const hears = (like: RegExp) => world.hears(OWNER, like);

async function declare(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(home.path, 'config', path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

await declare(SWITCHED_OFF);

it('shares turns of a chat among the models, and says what it does', async () => {
  expect(await says('/mode', /The mode is/)).toMatch(/trio[\s\S]*router deepseek\/sim-router/);
  expect(await says('sum it up', /main/)).toBe('main(writes): The sum is 42.');
  expect(await says('what is in my note?', /main/)).toBe('main(writes): NOTE-7');
  expect(await says('start a helper', /main/)).toMatch(/^main\(writes\): /);
  await hears(/HELPED/);
  await says('which colour?', /Red or blue\?/);

  const [first] = router.requests;
  expect(first?.tools).toEqual(['route_decision']);
  expect(first?.system).toContain('- read_file');
  expect(JSON.stringify(specialist.requests[0]?.body)).toContain('Add: ');
  expect(main.requests[0]?.tools).toEqual(['called_by_another_model']);
});

it('goes on with the main model and its tools while the router is down, and tells so', async () => {
  isRouterDown = true;
  for (const turn of [1, 2, 3]) await says(`hello ${turn}`, /^main\(tools\)/);
  await hears(/router deepseek\/sim-router does not answer since/);
  expect(await says('/status', /Mode: trio/)).toMatch(/sim-router does not answer since .* UTC/);
  isRouterDown = false;
  await hears(/sim-router answers again/);
  expect(await says('and my note?', /^main/)).toBe('main(writes): NOTE-7');
});

it('digests long results for the main model, by choice of the conversation', async () => {
  expect(await says('/mode delegated', /From the next message on/)).toMatch(
    /sim-runner has not been asked yet/,
  );
  await says('/new', /conversation/);
  const callsMade = () => main.requests.length + runner.requests.length;
  const earlier = callsMade();
  const told = await says('delegate: what is in the long file?', /^main/);
  const calls = callsMade() - earlier;
  expect(told).toMatch(/^main\(tools\): \[digest by another model of result r\d+\.1 of read_file/);
  expect(told).toContain('200 rows, each with an address.');
  expect(JSON.stringify(runner.requests[0]?.body)).toContain('row 199');
  // The digest stands in no entry of its own, and counts all the same.
  expect(calls).toBe(3);
  expect(await says('/cost', /This conversation/)).toContain('in 3 model calls');
  expect(await says('/mode none', /Modes:/)).toContain('trio');
  expect(await says('/mode default', /configured mode/)).toContain('trio');
});

it('has a supervisor hand out the work, and goes on with it where a killed process stood', async () => {
  expect(await says('/mode supervisor', /cannot work yet/)).toContain('no specialist');
  expect(await says('hello', /^main/)).toMatch(/^main\(tools\)/);
  await declare(DECLARED);
  expect(await says('/mode', /The mode is supervisor/)).toMatch(
    /supervisor deepseek\/sim-router[\s\S]*specialist guardian groq\/sim-specialist[\s\S]*scout/,
  );
  expect(await says('hello', /^main/)).toMatch(/^main\(tools\)/);
  isGuardianStuck = true;
  const before = specialist.requests.length;
  telegram.say(OWNER, 'how are my hosts?');
  const folder = join(home.path, 'sessions');
  const record = async () => {
    const names = await readdir(folder, { recursive: true });
    const files = names.filter((name) => name.endsWith('.jsonl')).map((name) => join(folder, name));
    return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('');
  };
  await telegram.waitFor(() => specialist.requests[before + 1]);
  // What was only read is recorded behind the call that follows.
  await expect.poll(record).toContain('alpha, bêta');
  await world.gateway.kill();
  isGuardianStuck = false;
  const shown = texts().length;
  await world.start();
  const whole = () => texts().slice(shown).join('\n');
  await telegram.waitFor(() => whole().includes('Mind bêta.') || undefined);
  expect(whole()).toContain(HEALTH);
  // Whoever was asked before the kill was not asked again.
  const asked = specialist.requests.slice(before).map(({ toolResults }) => toolResults.length);
  expect(asked).toEqual([0, 1, 1]);
  expect(JSON.stringify(specialist.requests.at(-1)?.body)).toContain('<supervisor_instruction>');
  expect(runner.requests.at(-1)?.system).toContain('You are the scout.');
  const kept = `In short:\n\n\`\`\`\n${HEALTH}\n\`\`\`\n\nMind bêta.`;
  await expect.poll(record).toContain(JSON.stringify(kept));

  const steps = router.requests.length;
  await says('go on forever', /In short/);
  expect(router.requests.length - steps).toBe(3);
  expect(await says('/why', /Steps:/)).toMatch(
    /the supervisor asked guardian: try 1 \(r\)\n.*guardian handed its work back/,
  );
  const cost = await says('/cost', /This conversation/);
  expect(cost).toMatch(/supervisor: .* model calls[\s\S]*specialist:guardian: .* model calls/);
});

it('counts every call by its role, and traces without secrets', async () => {
  const metrics = await readFile(join(home.path, 'metrics.jsonl'), 'utf8');
  for (const role of ROLES) {
    expect(metrics).toContain(`"role":"${role}"`);
  }
  const folder = join(home.path, 'traces');
  const days = await Array.fromAsync(await readdir(folder), (name) =>
    readFile(join(folder, name), 'utf8'),
  );
  const traces = days.join('');
  const lines = traces
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual(
    expect.objectContaining({ kind: 'route', by: 'call', model: 'deepseek/sim-router' }),
  );
  expect(lines).toContainEqual(
    expect.objectContaining({ kind: 'specialist', outcome: 'The sum is 42.' }),
  );
  expect(traces + (await home.logs())).not.toContain(SECRET);
});
