// The program as it runs in a container, without building one: set up by its environment, secrets and
// home mounted by an engine, a log that is collected, and commands in a second container.

import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { MAIN, runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';

const NODE_ID = 1000;
const TOKEN = 'a-token-of-the-gateway-4711';
const AS_NODE = ['setpriv', `--reuid=${NODE_ID}`, `--regid=${NODE_ID}`, '--clear-groups'];
const CONTAINED = { container: 'oci' };
const execute = promisify(execFile);

const isRoot = process.getuid?.() === 0;
const hasBubblewrap =
  spawnSync('bwrap', ['--dev-bind', '/', '/', '--unshare-user', 'true']).status === 0;
/** This machine without what may say that it is a container itself. */
const MACHINE = readdirSync('/', { withFileTypes: true })
  .filter(({ name }) => name !== '.dockerenv' && name !== 'run')
  .flatMap((entry) =>
    entry.isSymbolicLink()
      ? ['--symlink', readlinkSync(`/${entry.name}`), `/${entry.name}`]
      : ['--dev-bind', `/${entry.name}`, `/${entry.name}`],
  );
if (!isRoot) console.log('tests of mounted homes and of a second container skipped: not root');
if (!hasBubblewrap) console.log('tests of mounted secrets skipped: no working bubblewrap');

const folder = await mkdtemp(join(tmpdir(), 'nanobot-contained-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

const findingOf = (stdout: string, check: string) =>
  (JSON.parse(stdout) as readonly { check: string; text: string; remedy?: string }[]).find(
    (finding) => finding.check === check,
  );

/** The program as another process than a child of the test runner's user would start it. */
async function run(program: string, args: readonly string[], options: object) {
  const done = await execute(program, args, { encoding: 'utf8', ...options }).catch(
    (error: unknown) => error as { readonly stdout: string; readonly stderr: string },
  );
  return done.stdout + done.stderr;
}

const variables = (home: string) => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  NANOBOT_HOME: home,
  TZ: 'UTC',
});

describe('variables of the environment', () => {
  it('turn a channel on without a configuration file, its secret in a file', async () => {
    await using telegram = await startBotApi();
    await using home = await makeTestHome({ version: 1 });
    const secret = join(folder, 'telegram');
    await writeFile(secret, `${telegram.token}\n`, { mode: 0o600 });
    await home.start({
      NANOBOT__gateway__port: '0',
      NANOBOT__channels__telegram__enabled: 'true',
      NANOBOT__channels__telegram__token: JSON.stringify({ file: secret }),
      NANOBOT__channels__telegram__apiRoot: telegram.apiRoot,
      NANOBOT__channels__telegram__allowFrom: '["*"]',
    });
    telegram.say(700, 'hello');
    expect((await telegram.nextMessage(700)).text).not.toBe('');
    expect(telegram.violations).toEqual([]);
  });

  it('count over what is written, and are named where they are wrong', async () => {
    await using home = await makeTestHome({
      version: 1,
      agents: { defaults: { model: 'local/a' } },
    });
    const model = async (env: Readonly<Record<string, string>>) =>
      JSON.parse((await runNanobot(['status', '--json'], { home: home.path, env })).stdout).model;
    expect(await model({})).toBe('local/a');
    expect(await model({ NANOBOT__agents__defaults__model: 'local/b' })).toBe('local/b');
    const wrong = { NANOBOT__channels__telegramm__token: '1:a', NANOBOT__gateway__port: 'many' };
    const { code, stderr } = await runNanobot(['status'], { home: home.path, env: wrong });
    expect(code).not.toBe(0);
    for (const name of Object.keys(wrong)) expect(stderr).toContain(`variable ${name}`);
  });
});

describe.skipIf(!hasBubblewrap)('secrets that an engine mounts', () => {
  it('are read as they are mounted, and refused outside of a container', async () => {
    const secrets = join(folder, 'secrets');
    const home = join(folder, 'secret-home');
    await mkdir(secrets);
    await mkdir(home);
    const files = { docker: 0o444, group: 0o440 };
    for (const [name, mode] of Object.entries(files)) {
      await writeFile(join(secrets, name), 'a-key-4711-of-a-vendor');
      await chmod(join(secrets, name), mode);
    }
    const check = async (path: string, env: Readonly<Record<string, string>>) => {
      const providers = { openai: { apiKey: { file: path } } };
      await writeFile(join(home, 'config.json'), JSON.stringify({ version: 1, providers }));
      const mounts = ['/run/secrets', '/mnt'].flatMap((at) => ['--ro-bind', secrets, at]);
      const nanobot = [process.execPath, MAIN, 'config', 'validate'];
      const args = [...MACHINE, ...mounts, '--', ...nanobot];
      return run('bwrap', args, { env: { ...variables(home), ...env } });
    };
    for (const path of ['/run/secrets/docker', '/run/secrets/group', '/mnt/docker']) {
      expect(await check(path, CONTAINED)).not.toMatch(/other users|chmod/);
      const outside = await check(path, {});
      expect(outside).toContain(`other users can read ${path}`);
      expect(outside).toContain('Mount the file with mode 0400');
      expect(outside).not.toContain('chmod');
    }
    await chmod(join(secrets, 'docker'), 0o644);
    const writable = await check(join(secrets, 'docker'), CONTAINED);
    expect(writable).toContain(`chmod 600 ${join(secrets, 'docker')}`);
  });
});

describe.skipIf(!isRoot || !hasBubblewrap)('a home on a volume of a group', () => {
  it('serves in a container, and is refused elsewhere', async () => {
    const home = join(folder, 'volume');
    await mkdir(home);
    await chown(home, 0, NODE_ID);
    await chmod(home, 0o2775);
    await chmod(folder, 0o755);
    const nanobot = (args: readonly string[], env: Readonly<Record<string, string>>) =>
      run('bwrap', [...MACHINE, '--', ...AS_NODE, process.execPath, MAIN, ...args], {
        env: { ...variables(home), ...env },
      });
    const ask = ['agent', '-m', 'what time is it'];
    expect(await nanobot(ask, {})).toContain(`other users can read ${home}, and this user may not`);
    expect(await nanobot(ask, CONTAINED)).toMatch(/\d{4}-\d{2}-\d{2}/);
    expect(
      findingOf(await nanobot(['doctor', '--json'], CONTAINED), 'permissions')?.text,
    ).toContain('is private');
  });
});

describe.skipIf(!hasBubblewrap)('a place where no name spaces can be made', () => {
  it('is named by the doctor with what the engine needs in a container, else what the kernel does', async () => {
    const home = join(folder, 'confined-home');
    await mkdir(home);
    await writeFile(join(home, 'config.json'), JSON.stringify({ version: 1 }), { mode: 0o600 });
    const forbidden = ['--unshare-user', '--disable-userns', ...MACHINE, '--'];
    const doctor = [process.execPath, MAIN, 'doctor', '--json'];
    const programs = async (env: Readonly<Record<string, string>>) =>
      findingOf(
        await run('bwrap', [...forbidden, ...doctor], { env: { ...variables(home), ...env } }),
        'programs',
      );
    const inside = await programs(CONTAINED);
    expect(inside?.text).toContain('this container does not allow bubblewrap');
    expect(inside?.remedy).toMatch(
      /docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined/,
    );
    expect(inside?.remedy).not.toContain('kernel.');
    const outside = await programs({});
    expect(outside?.text).toContain('bubblewrap cannot create namespaces here');
    expect(outside?.remedy).toContain('kernel.unprivileged_userns_clone=1');
    expect(outside?.remedy).not.toContain('docker');
  });
});

describe('a running gateway', () => {
  it('is asked by the doctor where it listens', async () => {
    await using home = await makeTestHome({ version: 1, gateway: { port: 0 } });
    await home.start({ NANOBOT__gateway__host: '0.0.0.0', NANOBOT_GATEWAY_TOKEN: TOKEN });
    const { stdout } = await runNanobot(['doctor', '--json'], { home: home.path });
    expect(findingOf(stdout, 'address')?.text).toBe(
      '0.0.0.0: reachable from other machines with the token',
    );
  });

  it('demands its token by all names that it has', async () => {
    await using home = await makeTestHome({ version: 1, gateway: { host: '0.0.0.0' } });
    const { stderr } = await runNanobot(['gateway'], { home: home.path });
    expect(stderr).toContain('NANOBOT_GATEWAY_TOKEN');
  });

  it.skipIf(!isRoot)('is known to hold the home in a second container', async () => {
    await using home = await makeTestHome({ version: 1, gateway: { port: 0 } });
    const gateway = await home.start();
    const second = ['--pid', '--uts', '--fork', '--mount-proc', 'sh', '-c'];
    const command = (words: string) => [
      ...second,
      `hostname second && exec ${process.execPath} ${MAIN} ${words}`,
    ];
    const env = variables(home.path);
    const status = await run('unshare', command('status'), { env });
    expect(status).toMatch(new RegExp(`process ${gateway.pid} on \\S+ since \\S+ uses this home`));
    const doctor = await run('unshare', command('doctor --json'), { env });
    expect(findingOf(doctor, 'gateway')?.text).toContain('uses this home');
    expect(await gateway.stop()).toBe(0);
    expect(await run('unshare', command('status'), { env })).toContain('not running');
  });

  it('logs to a pipe where that is set, in JSON and without a link that logs in', async () => {
    await using home = await makeTestHome({ version: 1, gateway: { port: 0 } });
    let isStopped = false;
    const { code, stdout, stderr } = await runNanobot(['gateway'], {
      home: home.path,
      env: { NANOBOT__logging__stdout: 'true' },
      onOutput(printed, interrupt) {
        if (isStopped || !printed.includes('"gateway started"')) return;
        isStopped = true;
        interrupt();
      },
    });
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    for (const line of lines)
      expect(line).toMatchObject({ level: 'info', msg: expect.any(String) });
    expect(lines.map(({ msg }) => msg)).toContain('gateway stopped');
    expect(stdout).toContain('nanobot link');
    expect(stdout).not.toContain('#login=');
    expect(await home.logs()).toContain('gateway stopped');
  });
});
