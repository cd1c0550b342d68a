// Tool servers in the whole program: a model calls their tools, the owner is asked as for any other, a
// secret they were given stays one, and what a person changes in the configuration is followed.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { callTools, type LlmReply, say, startLlmServer } from '../support/llm-server.ts';

const CHILD = join(import.meta.dirname, '../support/mcp-server-child.ts');
const OWNER = 700;
const SECRET = 'planted-calc-key-0815';

test('the tools of a server are offered, called, asked about, and gone with their entry', async () => {
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
    gateway: { port: 0 },
    coalesce: { quietMs: 20 },
  };
  await using home = await makeTestHome(config);
  const withServers = { ...config, mcpServers: { calc, broken: { command: '/no/such/program' } } };
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
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"calc".*"connected"/);
  await expect.poll(status, { timeout: 45_000 }).toMatch(/"broken".*"failed"/);
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

  const doctor = await run('doctor');
  expect(doctor.stdout).toMatch(/tool server +calc: connected/);
  expect(doctor.stdout).toMatch(/tool server +broken: not connected/);

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
