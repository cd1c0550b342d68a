// People between a simulated platform, the whole program and a simulated model: each has memory,
// language and time of their own, and nothing of another's.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const OWNER = { id: 700, first_name: 'Olga' };
const ANNA = { id: 701, first_name: 'Anna' };

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

const heardBy = (chat: number) =>
  telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
const hears = (chat: number, pattern: RegExp) =>
  telegram.waitFor(() => heardBy(chat).find((text) => pattern.test(text)));

/** What the model is shown when the person says this. */
async function askedBy(person: typeof OWNER, text: string): Promise<string> {
  telegram.say(person, text);
  await hears(person.id, new RegExp(text.replace('please say ', '')));
  return JSON.stringify(model.requests.at(-1));
}

beforeAll(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'sk-people', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        enabled: true,
        token: telegram.token,
        apiRoot: telegram.apiRoot,
        allowFrom: [`${ANNA.id}`],
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 50 },
  });
  gateway = await home.start();
  const args = ['pair', 'approve', 'telegram', `${OWNER.id}`, '--role', 'owner'];
  expect((await runNanobot(args, { home: home.path })).code).toBe(0);
  const memory = join(home.path, 'workspace/memory');
  await mkdir(memory, { recursive: true });
  await writeFile(join(memory, 'MEMORY.md'), '- secret-of-olga\n');
  await writeFile(join(home.path, 'workspace/USER.md'), 'profile-of-olga\n');
}, 60_000);

afterAll(async () => {
  await gateway.kill();
  await home[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

it("shows the owner's memory to the owner alone", async () => {
  const owners = await askedBy(OWNER, 'please say nonce-one');
  expect(owners).toContain('secret-of-olga');
  expect(owners).toContain('profile-of-olga');
  const annas = await askedBy(ANNA, 'please say nonce-two');
  expect(annas).not.toContain('secret-of-olga');
  expect(annas).not.toContain('profile-of-olga');
});

it('shows a person their own notes', async () => {
  telegram.say(ANNA, '/me');
  const id = /p[0-9a-f]{12}/.exec(await hears(ANNA.id, /Role: trusted/))?.[0] ?? '';
  const notes = join(home.path, 'workspace/people', id, 'memory');
  await mkdir(notes, { recursive: true });
  await writeFile(join(notes, 'MEMORY.md'), '- note-of-anna\n');
  expect(await askedBy(ANNA, 'please say nonce-three')).toContain('note-of-anna');
  expect(await askedBy(OWNER, 'please say nonce-four')).not.toContain('note-of-anna');
  expect(await readFile(join(home.path, 'workspace/memory/MEMORY.md'), 'utf8')).not.toContain(
    'anna',
  );
});

it("answers in a person's language and time zone, also after a restart", async () => {
  telegram.say(ANNA, '/language de');
  await hears(ANNA.id, /I answer you in German/);
  telegram.say(ANNA, '/timezone Asia/Tokyo');
  await hears(ANNA.id, /Asia\/Tokyo/);
  telegram.say(ANNA, '/timezone Mars');
  await hears(ANNA.id, /no time zone/);
  await gateway.kill();
  gateway = await home.start();
  const annas = await askedBy(ANNA, 'please say nonce-five');
  expect(annas).toContain('Answer in German');
  expect(annas).toContain('(Asia/Tokyo)');
  const owners = await askedBy(OWNER, 'please say nonce-six');
  expect(owners).not.toContain('Answer in German');
  expect(owners).not.toContain('(Asia/Tokyo)');
}, 60_000);

it('lists people to the owner alone', async () => {
  telegram.say(ANNA, '/people');
  await hears(ANNA.id, /Only my owner/);
  telegram.say(OWNER, '/people');
  expect(await hears(OWNER.id, /Anna.*trusted/)).toMatch(/telegram.*701/);
});

it('answers nothing more to whoever is blocked, also not what is on its way', async () => {
  telegram.say(ANNA, '/language auto');
  const gate = Promise.withResolvers<void>();
  const before = model.requests.length;
  model.script({ chunks: ['The long answer has begun. ', gate.promise, 'Ended.'] });
  telegram.say(ANNA, 'a long question');
  await hears(ANNA.id, /has begun/);
  telegram.say(ANNA, '/queue followup');
  telegram.say(ANNA, 'one more question');
  const args = ['pair', 'block', 'telegram', `${ANNA.id}`];
  expect((await runNanobot(args, { home: home.path })).code).toBe(0);
  const [request] = model.requests.slice(before);
  await request?.abandoned;
  gate.resolve();
  expect(await askedBy(OWNER, 'please say nonce-seven')).toContain('nonce-seven');
  expect(model.requests).toHaveLength(before + 2);
  expect(heardBy(ANNA.id).join()).not.toMatch(/Ended|one more/);
}, 60_000);
