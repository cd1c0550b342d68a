// `nanobot gateway` as whoever started it sees it: what it prints, how it follows its configuration,
// how it stops.

import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { runNanobot } from './run-nanobot.ts';

const DEADLINE_MS = 45_000;

let home: TestHome;
let server: LlmServer;

beforeEach(async () => {
  server = await startLlmServer();
  home = await makeTestHome({
    version: 1,
    agents: { defaults: { model: 'local/sim' } },
    providers: { local: { apiBase: server.openaiBase } },
    gateway: { port: 0 },
  });
});
afterEach(async () => {
  await home[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Resolves when the gateway has printed the text. */
async function printed(gateway: GatewayProcess, text: string): Promise<void> {
  await expect.poll(gateway.output, { timeout: DEADLINE_MS }).toContain(text);
}

test('says what is on, what is not and how to turn it on', async () => {
  const gateway = await home.start();
  const output = gateway.output();
  expect(output).toContain('local/sim');
  expect(output).toContain(gateway.address);
  expect(output).toMatch(/telegram +off\. Turn it on with: nanobot /);
  expect(output.split('\n').length).toBeLessThan(15);
  expect(await gateway.stop()).toBe(0);
});

test('says at the start what the model lacks, and goes on', async () => {
  await home.writeConfig({
    version: 1,
    agents: { defaults: { model: 'openai/gpt-6-sol' } },
    gateway: { port: 0 },
  });
  const gateway = await home.start();
  expect(gateway.output()).toMatch(
    /openai\/gpt-6-sol\n +There is no API key for OpenAI.*OPENAI_API_KEY/,
  );
});

test('status tells the model of the gateway, whose environment may hold other keys', async () => {
  await home.writeConfig({ version: 1, gateway: { port: 0 } });
  const gateway = await home.start({ OPENAI_API_KEY: 'a-key-of-the-gateway' });
  const { stdout } = await runNanobot(['status', '--json'], { home: home.path });
  const { model } = JSON.parse(stdout);
  expect(model).toMatch(/^openai\//);
  expect(gateway.output()).toContain(model);
  expect(await gateway.stop()).toBe(0);
});

test('an invalid change keeps the old configuration in force and says so; a good one counts', async () => {
  const gateway = await home.start();
  await writeFile(join(home.path, 'config.json'), '{"version":1,"gatway":{}}');
  await printed(gateway, 'Did you mean gateway?');
  expect(gateway.output()).toContain('the old one stays in force');
  expect(gateway.output()).toContain('gatway (line 1, column 14)');
  const { stdout } = await runNanobot(['doctor'], { home: home.path });
  expect(stdout).not.toContain('does not answer');
  await writeFile(join(home.path, 'config.json'), '{"version":1,}');
  await printed(gateway, 'config.json (line 1, column 14): not valid JSON');
  await home.writeConfig({ version: 1, agents: { defaults: { model: 'local/other' } } });
  await printed(gateway, 'The changed configuration is in force.');
  const older = '{"tools":{"exec":{"timeout":30}},"gateway":{"drainSecs":1}}';
  await writeFile(join(home.path, 'config.json'), older);
  await printed(gateway, 'tools.exec.timeout is now tools.timeoutSecs');
  await printed(gateway, 'Start the gateway again for: gateway.drainSecs');
  expect(await gateway.stop()).toBe(0);
});

test('the page is told when each setting applies, also in a section that is not written yet', async () => {
  const gateway = await home.start();
  const ask = async (path: string, body?: object) => {
    const method = body === undefined ? 'GET' : 'POST';
    const headers = { ...gateway.credentials, 'content-type': 'application/json' };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return (await fetch(`${gateway.address}/api/v1/configuration${path}`, init)).json();
  };
  const { version } = await ask('');
  const changes = [
    { path: 'logging.level', value: 'debug' },
    { path: 'channels.lark.streaming', value: false },
    { path: 'queue.mode', value: 'collect' },
  ];
  expect((await ask('/check', { version, changes })).differences).toMatchObject([
    { path: 'logging.level', applies: 'start', after: 'debug' },
    { path: 'channels.lark.streaming', applies: 'channel' },
    { path: 'queue.mode', applies: 'turn' },
  ]);
});

test('a second signal leaves at once, although an answer is still being written', async () => {
  server.script({ fault: { kind: 'hang' } });
  const gateway = await home.start();
  await fetch(`${gateway.address}/api/web/chats/one/messages`, {
    method: 'POST',
    headers: { ...gateway.credentials, 'content-type': 'application/json' },
    body: JSON.stringify({ clientId: 'a', text: 'hello' }),
  });
  await server.received(1);
  const stopping = gateway.stop();
  await printed(gateway, 'Stopping');
  await gateway.stop();
  expect(await stopping).toBe(130);
});

test('one channel alone needs its credentials', async () => {
  const { code, stderr } = await runNanobot(['telegram'], { home: home.path });
  expect(code).toBe(3);
  expect(stderr).toContain('channels.telegram.token');
});

test('a broken configuration names the last one that loaded', async () => {
  await runNanobot(['status'], { home: home.path });
  await writeFile(join(home.path, 'config.json'), '{');
  const { code, stderr } = await runNanobot(['gateway'], { home: home.path });
  expect(code).toBe(3);
  expect(stderr).toContain('config.last-good.json');
});

test('deletes what was kept long enough soon after the start, not only after an hour', async () => {
  const folder = join(home.path, 'media', 'ab');
  const path = join(folder, `ab${'0'.repeat(62)}`);
  await mkdir(folder, { recursive: true });
  await writeFile(path, 'an old file');
  await utimes(path, 0, 0);
  await home.start();
  const isThere = () =>
    stat(path).then(
      () => true,
      () => false,
    );
  await expect.poll(isThere, { timeout: DEADLINE_MS }).toBe(false);
});

test('says that TZ names no time zone, and that UTC is used', async () => {
  const gateway = await home.start({ TZ: 'Nonsense/Zone' });
  expect(gateway.output()).toMatch(/TZ is "Nonsense\/Zone", which is not a time zone.*UTC/);
  const options = { home: home.path, env: { TZ: 'Nonsense/Zone' } };
  const doctor = await runNanobot(['doctor'], options);
  expect(doctor.stdout).toMatch(/! time-zone +TZ is "Nonsense\/Zone"/);
  const added = await runNanobot(['cron', 'add', '--cron', '0 8 * * *', '--say', 'tea'], options);
  expect(added.stdout).not.toContain('undefined');
  const { stdout } = await runNanobot(['cron', 'list', '--json'], options);
  expect(stdout).toContain('"UTC"');
  const asked = await runNanobot(['agent', '-m', 'what time is it'], options);
  expect(asked.stdout).not.toContain('undefined');
});

test('the first start adds the template files that a workspace folder lacks, later starts none', async () => {
  const workspace = join(home.path, 'workspace');
  await mkdir(join(workspace, '.git'), { recursive: true });
  await writeFile(join(workspace, 'AGENTS.md'), 'My rules.');
  await writeFile(join(workspace, 'profiles'), 'A file where the template has a folder.');
  const first = await home.start();
  await first.stop();
  expect(await readFile(join(workspace, 'AGENTS.md'), 'utf8')).toBe('My rules.');
  expect(await readFile(join(workspace, 'profiles'), 'utf8')).toMatch(/^A file/);
  expect(await readFile(join(workspace, 'memory', 'MEMORY.md'), 'utf8')).not.toBe('');
  await rm(join(workspace, 'HEARTBEAT.md'));
  const second = await home.start();
  await second.stop();
  expect(await readdir(workspace)).not.toContain('HEARTBEAT.md');
});
