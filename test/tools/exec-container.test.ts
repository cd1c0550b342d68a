// Programs in a container, where bubblewrap cannot be had: what the engine is told, what a program sees
// and reaches, and that nothing of it is left. The engine is a stand-in at the edge of the process: what
// it is told is checked to the letter, and done by the kernel; amounts are the engine's own to hold.

import { spawn } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createKnownSandbox, thisSystem } from '../../src/tools/exec/find-sandbox.ts';
import { execSchema } from '../../src/tools/exec/settings.ts';
import { IMAGE, type StandInEngine, startContainerEngine } from '../support/container-engine.ts';
import { createTestExecutor } from '../support/executor.ts';
import { execTools } from './exec-tools.ts';
import { createWorkspace } from './workspace-fixture.ts';

const env = { GREETING: 'hello', API_KEY: 'sk-live-secret', DOCKER_HOST: 'unix:///run/d.sock' };
let engine: StandInEngine;

beforeAll(async () => {
  engine = await startContainerEngine('docker');
});
afterAll(() => engine[Symbol.asyncDispose]());

async function setUp(config: object = {}) {
  const fixture = await createWorkspace();
  const executor = await createTestExecutor({
    home: fixture.home,
    env,
    system: { path: engine.path },
    config: { container: { image: IMAGE }, env: ['GREETING'], ...config },
  });
  return { ...fixture, executor, ...execTools(executor, fixture.context) };
}

const lastRun = async () => (await engine.calls()).findLast(({ args }) => args[0] === 'run');

describe('a program in a container', () => {
  test('is started with everything shut that was not opened', async () => {
    const { call, workspace, executor } = await setUp();
    expect(executor.found).toMatchObject({
      kind: 'found',
      sandbox: { kind: 'container', about: `a container of docker from ${IMAGE}` },
      passedOver: ['bubblewrap is not installed'],
    });
    const done = await call('exec', { script: 'env; id -u; cat hello.txt; echo x > made' });
    expect(done.text).toMatch(/GREETING=hello(?:.|\n)*line one/);
    expect(done.text).not.toContain('sk-live-secret');
    expect(await readFile(join(workspace, 'made'), 'utf8')).toBe('x\n');
    const { args = [], env: given } = (await lastRun()) ?? {};
    const said = args.join(' ');
    for (const flags of [
      '--rm --pull never --name nanobot-',
      '--log-driver none --network none --read-only --cap-drop ALL',
      '--security-opt no-new-privileges',
      `--user ${process.getuid?.()}:${process.getgid?.()} --hostname sandbox --ipc private`,
      '--memory 2048000000b --memory-swap 2048000000b --cpus 1 --pids-limit 256',
      '--ulimit core=0 --ulimit cpu=300 --ulimit fsize=500000000 --ulimit nofile=1024',
      '--tmpfs /tmp:rw,exec,nosuid,nodev,size=2048000000,mode=1777',
      `--mount type=bind,source=${workspace},target=${workspace} `,
      '--env GREETING ',
      '--env HTTP_PROXY= ',
    ]) {
      expect(said).toContain(flags);
    }
    // The value of what an owner passes on stands in no list of processes.
    expect(said).not.toContain('hello ');
    expect(given).toMatchObject({ DOCKER_HOST: 'unix:///run/d.sock', GREETING: 'hello' });
    expect(Object.keys(given ?? {})).not.toContain('API_KEY');
  });

  test('sees the workspace and no more, and of that not what is kept from it', async () => {
    const { call, workspace, home } = await setUp();
    for (const path of ['people/ann/memory', 'people/bob', 'memory', '.git/hooks']) {
      await mkdir(join(workspace, path), { recursive: true });
      await writeFile(join(workspace, path, 'note.md'), `note of ${path}`);
    }
    await writeFile(join(workspace, '.env'), 'KEY=of the person');
    const ann = { person: { notes: 'people/ann/' } };
    const script = `cat people/*/*.md people/*/*/*.md memory/*.md .env; ls ${home}; echo x > people/ann/x;
      echo x > .git/hooks/pre-commit; echo x > people/bob/x; echo x > /usr/x; echo x > /opt/x; ls /etc; cat /proc/net/dev; true`;
    const { text } = await call('exec', { script }, ann);
    expect(text).toContain('note of people/ann/memory');
    expect(text).not.toMatch(/note of people\/bob|note of memory|of the person|config\.json|eth0/);
    expect(text.match(/Read-only file system/g)?.length).toBeGreaterThanOrEqual(3);
    for (const path of ['people/ann/x', 'people/bob/x', '.git/hooks/pre-commit']) {
      await expect(readFile(join(workspace, path))).rejects.toThrow('ENOENT');
    }
    const reader = { rights: { ...ALL_RIGHTS, write: 'never' as const } };
    const refused = await call('exec', { script: 'echo x > made-too' }, reader);
    expect(refused.text).toContain('Read-only file system');
    const isolated = {
      language: 'shell',
      code: `ls ${workspace}; pwd; echo x > /tmp/x; echo done`,
    };
    const alone = await call('execute_code', isolated);
    expect(alone.text).toMatch(/\/tmp\ndone/);
    expect(alone.text).not.toContain('hello.txt');
  });

  test('is what an owner allowed: this image, and of the workspace this very file', async () => {
    const { call, seal, workspace } = await setUp();
    const path = join(workspace, 'tool.sh');
    await writeFile(path, '#!/bin/sh\necho good\n');
    await chmod(path, 0o755);
    const allowed = String(await seal({ argv: ['./tool.sh'] }));
    expect(allowed).toMatch(/^image sha256:5{64}\n\S+tool\.sh \S+ sha256:/);
    expect((await call('exec', { argv: ['./tool.sh'] }, { seal: allowed })).text).toContain('good');
    await writeFile(path, '#!/bin/sh\necho evil\n');
    const changed = await call('exec', { argv: ['./tool.sh'] }, { seal: allowed });
    expect(changed).toMatchObject({ failure: 'blocked' });
    const other = allowed.replace(/5{64}/, '6'.repeat(64));
    await writeFile(path, '#!/bin/sh\necho good\n');
    const moved = await call('exec', { argv: ['./tool.sh'] }, { seal: other });
    expect(moved).toMatchObject({ failure: 'blocked' });
    await writeFile(join(workspace, 'a,b.pem'), 'key');
    const comma = await call('exec', { argv: ['ls'] });
    expect(comma).toMatchObject({ failure: 'blocked', text: expect.stringContaining('a comma') });
  });
});

describe('nothing is left of a program in a container', () => {
  test('when its time is up, when it is stopped, and when it was killed with the gateway', async () => {
    const [first, second] = [await setUp(), await setUp()];
    const script = "trap '' TERM; sleep 1000 & sleep 1000";
    const late = first.call('exec', { script, timeout_secs: 1 });
    const stop = new AbortController();
    const stopped = second.call('exec', { argv: ['sleep', '1000'] }, { signal: stop.signal });
    await expect.poll(() => engine.names().length, { timeout: 45_000 }).toBe(2);
    stop.abort();
    expect(await stopped).toMatchObject({ failure: 'cancelled' });
    expect(await late).toMatchObject({ failure: 'timeout' });
    expect(engine.names()).toEqual([]);

    const runs = (await engine.calls()).filter(({ args }) => args.at(-1) === '1000');
    const old = (runs.at(-1)?.args.slice(0, -1) ?? []).map((each) =>
      each === 'nanobot.owner=test' ? 'nanobot.owner=me' : each,
    );
    const mounts = old.flatMap((each, at) => (each === '--mount' ? [at, at + 1] : []));
    const bare = old.filter((_, at) => !mounts.includes(at));
    bare[bare.indexOf('--workdir') + 1] = '/tmp';
    const client = spawn(join(engine.path, 'docker'), [...bare, '1000'], {
      stdio: 'ignore',
      env: {},
    });
    await expect.poll(() => engine.names().length, { timeout: 45_000 }).toBe(1);
    client.kill('SIGKILL');
    const config = execSchema.parse({ sandbox: 'container', container: { image: IMAGE } });
    const system = { ...thisSystem({}), path: engine.path };
    const deps = { system, clock: systemClock, log: silentLogger, config: () => config };
    const mine = createKnownSandbox({ ...deps, owner: 'me' });
    expect(mine()).toMatchObject({ kind: 'missing' });
    await expect.poll(() => mine().kind, { timeout: 45_000 }).toBe('found');
    expect(engine.names()).toEqual([]);
  });
});

test('a container is no sandbox without an image, an engine that answers, or a word for it', async () => {
  const podman = await startContainerEngine('podman');
  const why = async (config: object, path = podman.path) => {
    const home = engine.path;
    const executor = await createTestExecutor({ home, config, env, system: { path } });
    return executor.found;
  };
  const container = { image: IMAGE };
  const asked = { sandbox: 'container', container };
  expect(await why(asked)).toMatchObject({
    sandbox: { about: `a container of podman from ${IMAGE}` },
  });
  const flags = (await podman.calls()).find(({ args }) => args[0] === 'run')?.args.join(' ');
  expect(flags).toContain('--http-proxy=false --read-only-tmpfs=false');
  for (const [config, reason] of [
    [{ sandbox: 'container' }, 'no image for containers is named'],
    [{ sandbox: 'container', container: { image: 'other:1' } }, 'podman has no image other:1'],
    [{ sandbox: 'auto' }, 'bubblewrap is not installed'],
  ] as const) {
    expect(await why(config)).toMatchObject({
      kind: 'missing',
      reason: expect.stringContaining(reason),
    });
  }
  const unheld = 'Your kernel does not support memory limit capabilities. Limitation discarded.';
  await podman.complain(unheld);
  expect(await why(asked)).toMatchObject({ reason: expect.stringContaining(unheld) });
  await podman.stopAnswering();
  expect(await why(asked)).toMatchObject({
    reason: 'podman does not answer; docker is not installed',
  });
  await podman[Symbol.asyncDispose]();
});

test('where the container of nanobot forbids name spaces, that is said with what to give it', async () => {
  const { home } = await createWorkspace();
  const bwrap = '#!/bin/sh\n[ "$1" = --help ]\n';
  await writeFile(join(home, 'bwrap'), bwrap, { mode: 0o755 });
  const found = async (isContained: boolean) => {
    const system = { path: home, isContained };
    return (await createTestExecutor({ home, env, system })).found;
  };
  expect(await found(true)).toMatchObject({
    reason: 'this container does not allow bubblewrap to create namespaces',
    remedy: expect.stringContaining('--security-opt seccomp=unconfined'),
  });
  expect(await found(false)).toMatchObject({
    reason: 'bubblewrap cannot create namespaces here',
    remedy: expect.stringContaining('kernel.apparmor_restrict_unprivileged_userns=0'),
  });
});
