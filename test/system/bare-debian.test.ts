// The walk of a new user on a machine with nothing but Debian: install, service, log out, power cut, update, back-up,
// move to another user, uninstall. Then the service of the machine, with the sandbox of the agent's programs.

import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFullCampaign } from '../support/campaign.ts';
import { type Debian, startDebian, whyNoDebian } from '../support/debian.ts';
import { portOf } from '../support/listening.ts';
import { callTools, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { makeNodeMirror } from '../support/node-mirror.ts';
import { type NpmRegistry, startNpmRegistry } from '../support/npm-registry.ts';

const ROOT = join(import.meta.dirname, '../..');
const PACKAGE = process.env['NANOBOT_TEST_PACKAGE'] ?? '';
const [FROM, TO, SICK, NEXT] = ['0.2.0', '0.3.0', '0.5.0', '0.6.0'] as const;
const START_MS = 900_000;
/** As the program says it, after sudo. */
const AS_ROOT =
  'env NODE_DISABLE_COMPILE_CACHE=1 NANOBOT_HOME=/home/ben/.nanobot /home/ben/.local/bin/nanobot';
/** A gateway that ends soon after it has begun to answer. */
const DIES = `if (process.argv[2] === 'gateway' && !process.argv.includes('--trial')) {
  const { existsSync } = process.getBuiltinModule('node:fs');
  setInterval(() => {
    if (existsSync(process.env.NANOBOT_HOME + '/gateway.json')) setTimeout(() => process.exit(9), 900);
  }, 50);
}\n`;
const execute = promisify(execFile);
const absent = isFullCampaign() ? await whyNoDebian() : 'only in the full campaign';
if (absent !== undefined) console.log(`walk on a bare Debian skipped: ${absent}`);

let folder: string;
let debian: Debian;
let registry: NpmRegistry;
let model: LlmServer;
let mirror: Server;
let installer: string;
let before: readonly string[];

/** Files that a person would find; not those that a running Debian writes by itself. */
async function files(): Promise<readonly string[]> {
  const own = [
    'dev',
    'proc',
    'run',
    'sys',
    'tmp',
    'var/log',
    'var/lib/systemd',
    'var/lib/dbus',
    'var/tmp',
  ];
  const pruned = own.flatMap((path) => ['-o', '-path', join(debian.root, path)]).slice(1);
  const found = await execute(
    'find',
    [debian.root, '(', ...pruned, ')', '-prune', '-o', '-not', '-type', 'd', '-print'],
    {
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  return found.stdout.split('\n').map((path) => path.slice(debian.root.length));
}

const ok = async (user: string, command: string) => {
  const { code, said } = await debian.run(user, command);
  expect(code, `${command}: ${said}`).toBe(0);
  return said;
};
const serviceOf = async (user: string) =>
  JSON.parse((await debian.run(user, 'nanobot service status --json')).said);

beforeAll(async () => {
  if (absent !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'nanobot-walk-'));
  const { name } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
  registry = await startNpmRegistry(name, folder);
  for (const version of [FROM, TO]) await registry.publish(PACKAGE, version);
  const served = join(folder, 'mirror');
  await makeNodeMirror(served);
  await cp(join(ROOT, 'install.sh'), join(served, 'install.sh'));
  mirror = createServer((request, response) => {
    readFile(join(served, normalize(request.url ?? ''))).then(
      (content) => response.end(content),
      () => response.writeHead(404).end(),
    );
  });
  const port = await portOf(mirror);
  model = await startLlmServer();
  const url = `http://127.0.0.1:${port}`;
  const names = `NANOBOT_NODE_MIRROR=${url} NANOBOT_REGISTRY=${registry.url}`;
  installer = `wget -qO install.sh ${url}/install.sh && ${names} sh install.sh`;
  debian = await startDebian();
  await ok('root', 'useradd --create-home ann && useradd --create-home ben');
  // The registry of npm, as every program of these users would be told of it.
  await ok(
    'root',
    `echo 'export NANOBOT_REGISTRY=${registry.url} NANOBOT__gateway__port=0' > /etc/profile.d/registry.sh`,
  );
  before = await files();
}, START_MS);

afterAll(async () => {
  await debian?.[Symbol.asyncDispose]();
  await registry?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  mirror?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}, START_MS);

describe.skipIf(absent !== undefined)('a new user on a machine with nothing but Debian', () => {
  it('installs it by one script, which brings Node', { timeout: START_MS }, async () => {
    registry.latest = FROM;
    expect(await ok('ann', installer)).toContain(`Installed nanobot ${FROM}`);
    expect(await ok('ann', 'nanobot agent -m "what time is it"')).toMatch(/\d{4}-\d{2}-\d{2}/);
  });

  it('lets it run as a service, which goes on after the logout and a power cut', {
    timeout: START_MS,
  }, async () => {
    const login = debian.start('ann', 'sleep infinity');
    const said = await ok('ann', 'nanobot service install');
    expect(said).toContain('sudo loginctl enable-linger ann');
    await ok('root', 'loginctl enable-linger ann');
    const first = await serviceOf('ann');
    expect(first).toMatchObject({ state: 'running', startsAt: 'boot' });
    login.kill('SIGKILL');
    await ok('root', 'loginctl terminate-user ben; true');
    expect(await serviceOf('ann')).toMatchObject({ state: 'running', pid: first.pid });
    expect(await debian.run('ann', 'nanobot gateway')).toMatchObject({ code: 4 });
    await debian.reboot();
    await expect.poll(() => serviceOf('ann')).toMatchObject({ state: 'running' });
    expect(await ok('ann', 'nanobot agent -m "what time is it"')).toMatch(/\d{4}-\d{2}-\d{2}/);
  });

  it('updates it; a killed update leaves no service stopped', { timeout: START_MS }, async () => {
    registry.latest = TO;
    await cp(join(ROOT, 'test/support/break-at-step.mjs'), join(debian.root, 'break.mjs'));
    const breaking = `NODE_OPTIONS=--import=/break.mjs BREAK_AT='kill before switched'`;
    expect((await debian.run('ann', `${breaking} nanobot update`)).code).not.toBe(0);
    await expect.poll(() => serviceOf('ann')).toMatchObject({ state: 'running' });
    await ok('ann', 'nanobot update --watch 3');
    expect(await ok('ann', 'nanobot --version')).toBe(`${TO}\n`);
    expect(await serviceOf('ann')).toMatchObject({ state: 'running' });
    await rm(join(debian.root, 'break.mjs'));
  });

  it('goes back from a version that does not stay healthy', { timeout: START_MS }, async () => {
    await registry.publish(PACKAGE, SICK, async (at) => {
      const main = join(at, 'dist/main.js');
      await writeFile(main, DIES + (await readFile(main, 'utf8')));
    });
    const { code, said } = await debian.run('ann', 'nanobot update --watch 20');
    expect({ code, said }).toMatchObject({
      code: 1,
      said: expect.stringContaining('was rolled back'),
    });
    expect(await ok('ann', 'nanobot --version')).toBe(`${TO}\n`);
    await expect.poll(() => serviceOf('ann')).toMatchObject({ state: 'running' });
    await registry.publish(PACKAGE, NEXT);
    registry.latest = TO;
  });

  it('backs it up, proves the back-up, and moves it to another user', {
    timeout: START_MS,
  }, async () => {
    await ok('root', 'install -d -o ann /srv/ann && chmod 755 /srv/ann');
    await ok('ann', 'nanobot backup create --to /srv/ann/backups');
    expect(await ok('ann', 'nanobot backup verify --from /srv/ann/backups')).toContain('started');
    await ok('ann', 'nanobot move --yes --to /srv/ann/home.tar');
    expect(await debian.run('ann', 'nanobot gateway')).toMatchObject({ code: 4 });
    await debian.reboot();
    await expect.poll(() => serviceOf('ann')).toMatchObject({ state: 'failed', restarts: 0 });
    await ok('root', 'chown ben /srv/ann/home.tar; loginctl enable-linger ben');
    await ok('ben', installer);
    await ok('ben', 'nanobot backup restore --from /srv/ann/home.tar --takes-over');
    await ok('ben', 'nanobot service install');
    expect(await serviceOf('ben')).toMatchObject({ state: 'running', startsAt: 'boot' });
    expect(await ok('ben', 'nanobot sessions list')).not.toBe('');
  });

  it('runs as a hardened service of the machine, with bubblewrap for programs of the agent', {
    timeout: START_MS,
  }, async () => {
    await ok('ben', 'nanobot service uninstall');
    await ok('ben', `nanobot config set providers.openai.apiBase ${model.openaiBase}`);
    await ok('ben', 'nanobot config set providers.openai.apiKey sk-simulated');
    await ok('ben', 'nanobot config set agents.defaults.model openai/sim-1');
    const refused = await debian.run('ben', 'nanobot service install --system');
    expect(refused.said).toContain('sudo env NODE_DISABLE_COMPILE_CACHE=1');
    await ok('root', `${AS_ROOT} service install --system`);
    await ok('root', 'systemd-analyze verify /etc/systemd/system/nanobot-*.service');
    const script = 'echo runs; ls /home/ben/.nanobot/config.json; touch /usr/x';
    model.script(callTools({ name: 'exec', arguments: { script } }), say('done'));
    await ok('ben', 'nanobot agent -m "look around"');
    const { messages } = model.requests.at(-1)?.body ?? {};
    const result = JSON.stringify(Array.isArray(messages) ? messages.at(-1) : messages);
    expect(result).toContain('runs');
    expect(result).toMatch(/config.json': No such file/);
    expect(result).toMatch(/usr\/x': Read-only file system/);
  });

  it('updates the service of the machine by root alone, also where the installation is root’s; a killed update goes back, and is finished', {
    timeout: START_MS,
  }, async () => {
    registry.latest = SICK;
    const installation = '/home/ben/.local/share/nanobot';
    await ok('root', `chown -hR root ${installation}`);
    const refused = await debian.run('ben', 'nanobot update');
    expect(refused).toMatchObject({ code: 1, said: expect.stringMatching(/sudo env .* update\n/) });
    await cp(join(ROOT, 'test/support/break-at-step.mjs'), join(debian.root, 'break.mjs'));
    const breaking = `NODE_OPTIONS=--import=/break.mjs BREAK_AT='kill after switched'`;
    expect((await debian.run('root', `${breaking} ${AS_ROOT} update`)).code).not.toBe(0);
    const record = async () =>
      JSON.parse(await readFile(join(debian.root, 'home/ben/.nanobot/update.json'), 'utf8'));
    await expect.poll(record, { timeout: 120_000 }).toMatchObject({ step: 'rolling-back' });
    // What starts a service that a killed update left stopped loads it too.
    await rm(join(debian.root, 'break.mjs'));
    // The link still leads to the new version; what runs is the one before.
    await expect.poll(() => serviceOf('ben')).toMatchObject({ state: 'running' });
    expect(await ok('ben', 'nanobot doctor; true')).toContain('was interrupted');
    const finished = await debian.run('root', `${AS_ROOT} update`);
    expect(finished).toMatchObject({ code: 1, said: expect.stringContaining('was rolled back') });
    expect(await ok('ben', 'nanobot --version')).toBe(`${TO}\n`);
    await expect.poll(() => serviceOf('ben')).toMatchObject({ state: 'running' });
    registry.latest = NEXT;
    await ok('root', `${AS_ROOT} update --watch 3`);
    expect(await ok('ben', 'nanobot --version')).toBe(`${NEXT}\n`);
    await ok('root', `chown -hR ben ${installation}`);
    expect(await ok('root', 'find /home/ben -not -user ben')).toBe('');
  });

  it('leaves nothing but the homes', { timeout: START_MS }, async () => {
    await ok('root', `${AS_ROOT} service uninstall`);
    for (const user of ['ann', 'ben']) await ok(user, 'sh install.sh --uninstall && rm install.sh');
    await ok('root', 'rm -r /srv/ann');
    const left = (await files()).filter((path) => !before.includes(path));
    expect(left.filter((path) => !/^\/home\/(ann|ben)\/\.nanobot(-backups)?\//.test(path))).toEqual(
      [],
    );
  });
});
