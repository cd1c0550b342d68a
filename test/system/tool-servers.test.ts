// Tool servers in the whole program: a model calls their tools, the owner is asked as for any other, a
// secret they were given stays one, and what a person changes in the configuration is followed.

import { readFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { callTools, type LlmReply, say, startLlmServer } from '../support/llm-server.ts';
import { startMcpOAuthServer } from '../support/mcp-oauth-server.ts';

const CHILD = join(import.meta.dirname, '../support/mcp-server-child.ts');
const OWNER = 700;
const SECRET = 'planted-calc-key-0815';

test('the tools of a server are offered, called, asked about, and gone with their entry', async () => {
  await using hosted = await startMcpOAuthServer();
  hosted.state.isProtected = false;
  await using telegram = await startBotApi();
  const { token, apiRoot } = telegram;
  const plan: LlmReply[] = [];
  await using model = await startLlmServer({ respond: () => plan.shift() ?? say('Done.') });
  const calc = {
    command: process.execPath,
    args: [CHILD],
    env: JSON.parse('{"API_KEY": {"env": "CALC_KEY"}, "DEBUG": "hello"}'),
    toolAccess: { add: 'read', env: 'read' } as const,
    timeoutSecs: 45,
  };
  const config = {
    version: 1 as const,
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'a-key', apiBase: model.openaiBase } },
    channels: { telegram: { enabled: true, token, apiRoot, streaming: false } },
    gateway: { port: 0, publicUrl: 'https://nanobot.example.org' },
    coalesce: { quietMs: 20 },
  };
  await using home = await makeTestHome(config);
  const broken = { command: '/no/such/program' };
  const notes = { url: hosted.url, access: 'read' as const };
  const withServers = { ...config, mcpServers: { calc, broken, notes } };
  await home.writeConfig(withServers);
  const env = { CALC_KEY: SECRET };
  const run = (...args: string[]) => runNanobot(args, { home: home.path, env });
  const gateway = await home.start(env);
  await run('pair', 'approve', 'telegram', `${OWNER}`, '--role', 'owner');
  const bot = () => telegram.chat(OWNER).messages.filter(({ from }) => from === 'bot');
  const told = async (words: string, answer: RegExp) => {
    const before = bot().length;
    telegram.say(OWNER, words);
    await telegram.waitFor(() =>
      bot()
        .slice(before)
        .find(({ text }) => answer.test(text)),
    );
  };

  // Reached beside the start, never before it.
  const status = async () => {
    const answer = await fetch(`${gateway.address}/api/status`, { headers: gateway.credentials });
    return JSON.stringify(await answer.json());
  };
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"calc"[^}]*"connected"/);
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"broken"[^}]*"failed"/);
  const list = await run('mcp', 'list');
  expect(list.stdout).toMatch(/calc +connected, 8 tools/);
  expect(list.stdout).toMatch(/broken +not connected: the program, or the folder.*not found/);
  expect(list.stdout).toContain('  mcp_calc_add');

  plan.push(
    callTools(
      { name: 'mcp_calc_add', arguments: { a: 2, b: 3 } },
      { name: 'mcp_calc_env', arguments: {} },
      { name: 'mcp_calc_die', arguments: {} },
    ),
  );
  await told('what is 2 + 3', /Done\./);
  const [sum, environment, die] = model.requests.at(-1)?.toolResults ?? [];
  expect(sum?.text).toContain('> 5');
  expect(environment?.text).toContain('"API_KEY":"[redacted]"');
  expect(environment?.text).toContain('"DEBUG":"hello"');
  expect(environment?.text).not.toContain('NANOBOT');
  expect(die?.text).toMatch(/^Not run yet/);
  expect(model.requests.at(-1)?.tools).toContain('mcp_calc_add');

  // A hosted server begins to want a login: the owner is told, and logs in from the phone by a link,
  // which ends at the public address.
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"notes"[^}]*"connected"/);
  hosted.state.isProtected = true;
  plan.push(callTools({ name: 'mcp_notes_greet', arguments: { name: 'Bob' } }));
  await told('greet Bob', /Done\./);
  expect(model.requests.at(-1)?.toolResults.at(-1)?.text).toContain('needs a login by the owner');
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"notes"[^}]*"login"/);
  const notice =
    'The tool server notes needs a login before its tools can be used. Send /mcp login notes.';
  await telegram.waitFor(() => bot().find((message) => message.text === notice));
  telegram.say(OWNER, '/mcp login notes');
  const [link = ''] = await telegram.waitFor(
    () => /http\S+\/authorize\S+/.exec(bot().at(-1)?.text ?? '') ?? undefined,
  );
  const end = new URL((await fetch(link, { redirect: 'manual' })).headers.get('location') ?? '');
  expect(end.origin).toBe('https://nanobot.example.org');
  const throughProxy = (path: string, host = end.host) =>
    new Promise<string>((resolve, reject) => {
      get(new URL(path, gateway.address), { headers: { host } }, (answer) =>
        text(answer).then((page) => resolve(`${answer.statusCode} ${page}`), reject),
      ).on('error', reject);
    });
  const guessed = `${end.pathname}?code=x&state=guessed`;
  expect(await throughProxy(guessed)).toMatch(/^400 .*not the login that was requested/s);
  const right = end.pathname + end.search;
  expect(await throughProxy(right, 'elsewhere.example.org')).toMatch(/^421/);
  expect(await throughProxy(right)).toMatch(/^200 .*login is complete/s);
  expect(await throughProxy(right)).toMatch(/^400/);
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"notes"[^}]*"connected"/);
  plan.push(callTools({ name: 'mcp_notes_greet', arguments: { name: 'Ada' } }));
  await told('greet Ada', /Done\./);
  expect(model.requests.at(-1)?.toolResults.at(-1)?.text).toContain('> hello Ada');
  await told('/mcp', /notes: connected, 1 tool: mcp_notes_greet/);
  await told('/mcp logout notes', /Logged out of notes/);
  hosted.endStreams();
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"notes"[^}]*"login"/);

  // The same in a terminal; the gateway ends the login there too.
  expect((await run('mcp', 'login', 'calc')).stderr).toContain('is a program on this machine');
  let opened: Promise<string> | undefined;
  const browse = async (address: string) => {
    const answer = await fetch(address, { redirect: 'manual' });
    const { pathname, search } = new URL(answer.headers.get('location') ?? '');
    return throughProxy(pathname + search);
  };
  const login = await runNanobot(['mcp', 'login', 'notes'], {
    home: home.path,
    env,
    onOutput(printed) {
      const [found] = /http\S+\/authorize\S+(?=\n)/.exec(printed) ?? [];
      if (found !== undefined) opened ??= browse(found);
    },
  });
  expect(login).toMatchObject({ code: 0, stdout: expect.stringContaining('Logged in to notes.') });
  expect(await opened).toMatch(/^200/);
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"notes"[^}]*"connected"/);
  expect(hosted.state.violations).toEqual([]);
  const audit = await readFile(join(home.path, 'audit.jsonl'), 'utf8');
  expect(`${audit}${await home.logs()}`).not.toMatch(/mcp-access|mcp-refresh/);

  const doctor = await run('doctor');
  expect(doctor.stdout).toMatch(/tool-server +calc: connected/);
  expect(doctor.stdout).toMatch(/tool-server +broken: not connected/);

  await home.writeConfig(config);
  await gateway.printed(/changed configuration is in force/);
  await told('and now', /Done\./);
  expect(model.requests.at(-1)?.tools).not.toContain('mcp_calc_add');
  expect(await status()).not.toContain('calc');
  expect(await home.logs()).not.toContain(SECRET);
  expect(await gateway.stop()).toBe(0);

  // What is asked once, by a program that ends with the answer, has the tools too.
  await home.writeConfig(withServers);
  expect((await run('agent', '-m', 'hello')).stdout).toContain('Done.');
  expect(model.requests.at(-1)?.tools).toContain('mcp_calc_add');
});
