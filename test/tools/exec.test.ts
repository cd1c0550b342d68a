// Programs that the agent runs: what it is told of them, that nothing of them is left, and that what an
// owner allowed is what runs.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { verifyAudit } from '../../src/kernel/observe/audit.ts';
import { seatbeltProfile } from '../../src/tools/exec/os-sandboxes.ts';
import { NO_SHIELDS } from '../../src/tools/exec/sandbox.ts';
import { removeOldFolders } from '../../src/tools/exec/scripts.ts';
import { isLoaderVariable } from '../../src/tools/exec/settings.ts';
import { createIdleExecutor, createTestExecutor } from '../support/executor.ts';
import { createMemoryStore } from '../support/memory-host.ts';
import { execTools } from './exec-tools.ts';
import { createWorkspace } from './workspace-fixture.ts';

const idle = createIdleExecutor();

async function setUp(config: object = {}, env: Record<string, string> = {}) {
  const fixture = await createWorkspace();
  const redact = (text: string) => text.replaceAll('sk-live-secret', '[secret]');
  const executor = await createTestExecutor({ home: fixture.home, config, env, redact });
  return { ...fixture, executor, ...execTools(executor, fixture.context) };
}

/** Processes of this machine whose command line holds the word. */
function running(word: string): readonly string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });
}

/** Whether the script in this folder speaks of the word; others come and go meanwhile. */
function holds(folder: string, word: string): boolean {
  try {
    return readFileSync(join(tmpdir(), folder, 'script.sh'), 'utf8').includes(word);
  } catch {
    return false;
  }
}

const numbers = { last: 100_000 + (process.pid % 1000) * 100 };
/** A number of seconds that nothing else on the machine sleeps for. */
function longTime(): string {
  numbers.last += 1;
  return `${numbers.last}.5`;
}

describe('the result of a program', () => {
  test('is its output, its exit code in words and how long it took', async () => {
    const { call } = await setUp();
    const good = await call('exec', { argv: ['sh', '-c', 'cat hello.txt; echo more >&2'] });
    expect(good).toMatchObject({ status: 'ok', isForeign: true });
    expect(good.text).toMatch(/done, exit code 0; \d+\.\d s\]/);
    expect(good.text).toMatch(/line one\n.*line two\n.*line three\n.*\[errors\]\n.*more/);
    const bad = await call('exec', { command: 'echo why; exit 3' });
    expect(bad).toMatchObject({ status: 'failed', failure: 'execution' });
    expect(bad.text).toMatch(/failed, exit code 3; .*\n.*why/);
    const crashed = await call('exec', { script: 'kill -SEGV $$' });
    expect(crashed.text).toContain('ended by SIGSEGV (it crashed)');
    expect((await call('exec', { argv: ['true'] })).text).toContain('(no output)');
    expect((await call('exec', { argv: ['cat'] })).text).toContain('(no output)');
  });

  test('keeps the beginning and the end of what is long, and tells what is no text', async () => {
    const { call } = await setUp({ limits: { outputBytes: 1000 } });
    const long = await call('exec', { script: 'seq 1 200000' });
    expect(long.text).toMatch(/\b1\n(?:.|\n)*\[1,\d{3},\d{3} bytes left out(?:.|\n)*200000/);
    expect(long.text.length).toBeLessThan(4000);
    const binary = await call('exec', { argv: ['head', '-c', '5000', '/dev/zero'] });
    expect(binary.text).toContain('(output: 5,000 bytes that are not text, not shown)');
    const drawn = await call('exec', {
      argv: ['printf', '\\033[31mred\\033[0m 1%%\\r2%%\\r\\a100%%\\n'],
    });
    expect(drawn.text).toMatch(/> 100%$/m);
  });

  test('waits for that of another program in the same workspace', async () => {
    const { call, workspace } = await setUp();
    const first = call('exec', { script: 'sleep 0.3; echo first >> log; echo x > AGENTS.md' });
    const second = call('exec', { script: 'cat log; ls' });
    expect((await first).text).toContain(
      'kept as AGENTS.md.made-by-a-program, because later turns would',
    );
    expect((await second).text).toMatch(/first\n.*AGENTS\.md\.made-by-a-program/);
    expect(await readdir(workspace)).not.toContain('AGENTS.md');
  });

  test('is ours alone where only our code went in, and untrusted content otherwise', async () => {
    const { call } = await setUp();
    const own = await call('execute_code', { code: 'console.log(6 * 7)' });
    expect(own).toEqual({ status: 'ok', text: expect.stringMatching(/^\[done.*\]\n42$/) });
    const typed = { language: 'typescript', code: 'const a: number = 4; console.log(a)' };
    expect((await call('execute_code', typed)).text).toMatch(/\n4$/);
    const files = { language: 'python', code: 'print(open("hello.txt").read())', files: true };
    expect(await call('execute_code', files)).toMatchObject({ isForeign: true });
    const none = { language: 'shell', code: 'ls "$HOME"' };
    expect((await call('execute_code', none)).text).toContain('(no output)');
    const missing = await call('exec', { argv: ['no-such-program'] });
    expect(missing).toMatchObject({ failure: 'not_found' });
    expect(missing.isForeign).toBeUndefined();
  });

  test('says what was wrong with the call', async () => {
    const { call } = await setUp();
    for (const [input, told] of [
      [{}, /either argv or script/],
      [{ argv: ['ls'], script: 'ls' }, /either argv or script/],
      [{ argv: [''] }, /no name/],
      [{ argv: ['/etc/passwd'] }, /cannot be run from/],
      [{ argv: ['../../bin/ls'] }, /cannot be run from/],
      [{ argv: ['ls'], cwd: '../..' }, /out of the workspace/],
      [{ argv: ['ls'], cwd: 'nowhere' }, /no folder nowhere/],
      [{ argv: ['a\0b'] }, /no argument can/],
      [{ argv: ['ls'], timeout_secs: 10_000 }, /600/],
    ] as const) {
      const outcome = await call('exec', input);
      expect(outcome).toMatchObject({ status: 'failed', text: expect.stringMatching(told) });
    }
  });
});

describe('a program that is over', () => {
  test('leaves nothing of it, however it hid what it started', async () => {
    const { call } = await setUp();
    const hiding: readonly ((seconds: string) => string)[] = [
      (seconds) => `sleep ${seconds} & echo started`,
      (seconds) => `setsid nohup sleep ${seconds} & sleep 0.1; echo started`,
      (seconds) => `(setsid sh -c 'sleep ${seconds} & sleep ${seconds} &' &) ; sleep 0.1`,
      (seconds) => `trap '' TERM HUP; sleep ${seconds}`,
      (seconds) => `for i in 1 2 3 4 5; do setsid sleep ${seconds} & done; wait`,
    ];
    const runs = hiding.map(async (script) => {
      const seconds = longTime();
      const begun = performance.now();
      const code = { language: 'shell', code: script(seconds), timeout_secs: 1 };
      await call('execute_code', code);
      return { left: running(seconds), seconds: Math.floor((performance.now() - begun) / 1000) };
    });
    for (const { left, seconds } of await Promise.all(runs)) {
      expect(left).toEqual([]);
      expect(seconds).toBeLessThan(40);
    }
  });

  test('was ended by the person, the time or the end of the gateway itself', async () => {
    const { call, home } = await setUp();
    const [first, second] = [longTime(), longTime()];
    const stop = new AbortController();
    const stopped = call('exec', { argv: ['sleep', first] }, { signal: stop.signal });
    await expect.poll(() => running(first).length).toBeGreaterThan(0);
    stop.abort();
    expect(await stopped).toMatchObject({ failure: 'cancelled' });
    await expect.poll(() => running(first)).toEqual([]);
    const late = await call('exec', { argv: ['sleep', first], timeout_secs: 1 });
    expect(late).toMatchObject({ status: 'failed', failure: 'timeout' });
    expect(late.text).toContain('timed out after 1 s; ended with all it had started');

    const child = spawn(process.execPath, [
      join(import.meta.dirname, 'exec-child.ts'),
      home,
      second,
    ]);
    await expect.poll(() => running(second).length, { timeout: 45_000 }).toBeGreaterThan(2);
    child.kill('SIGKILL');
    await expect.poll(() => running(second)).toEqual([]);
    const begun = await verifyAudit(join(home, 'audit.jsonl'), createMemoryStore());
    expect(begun).toMatchObject({ unfinished: [{ fields: { tool: 'exec', status: 'begun' } }] });
    const scripts = () => readdirSync(tmpdir()).filter((name) => name.startsWith('nanobot-exec-'));
    const left = scripts().find((name) => holds(name, second)) ?? '';
    await removeOldFolders(Date.now() - 3_600_000);
    expect(scripts()).toContain(left);
    await utimes(join(tmpdir(), left), 0, 0);
    await removeOldFolders(Date.now() - 3_600_000);
    expect(scripts()).not.toContain(left);
  });

  test('is over without a sandbox too, with what it detached', async () => {
    const { call } = await setUp({ sandbox: 'off' });
    const seconds = longTime();
    const script = `setsid nohup sleep ${seconds} & sleep ${seconds} & sleep 0.2; echo started`;
    expect((await call('exec', { script })).text).toContain('started');
    await expect.poll(() => running(seconds)).toEqual([]);
  });
});

test('is the same for a standing yes only with the same words, folder, time and confinement', async () => {
  const terms = async (config: object, input: object = { argv: ['git', 'pull'] }) => {
    const bound = (await setUp(config)).toolbox.bind('exec', JSON.stringify(input));
    return bound.kind === 'ready' ? bound.standing?.() : undefined;
  };
  const plain = await terms({});
  expect(await terms({}, { argv: ['git', 'pull'], cwd: '.', timeout_secs: 60 })).toEqual(plain);
  const others = [
    await terms({}, { argv: ['git', 'pull', '-f'] }),
    await terms({}, { argv: ['pull', 'git'] }),
    await terms({}, { script: 'git pull' }),
    await terms({}, { argv: ['git', 'pull'], cwd: 'notes' }),
    await terms({}, { argv: ['git', 'pull'], timeout_secs: 61 }),
    await terms({ network: 'on' }),
    await terms({ sandbox: 'off' }),
    await terms({ env: ['LANG'] }),
  ];
  const patterns = [plain, ...others].map((each) => each?.pattern);
  expect(new Set(patterns).size).toBe(patterns.length);
  expect([plain, ...others].map((each) => each?.scope)).toEqual(patterns.map(() => undefined));
  const list = await terms({}, { argv: ['ls', '-l'], cwd: 'notes' });
  expect(list?.scope).toBe('ls in notes/, with any arguments');
  expect(await terms({}, { argv: ['ls', 'x'], cwd: 'notes' })).toEqual(list);
  expect(await terms({}, { argv: ['ls', 'x'] })).not.toEqual(list);
  for (const argv of [
    ['sh', 'x'],
    ['git', 'x'],
    ['npm', 'test'],
    ['./ls', 'x'],
    ['find', 'x'],
  ]) {
    expect((await terms({}, { argv }))?.scope, argv[0]).toBeUndefined();
  }
  expect((await terms({ sandbox: 'off' }, { argv: ['ls', '-l'] }))?.scope).toBeUndefined();
});

describe('what an owner allowed', () => {
  test('is refused where the file that runs is another one', async () => {
    const { call, seal, workspace } = await setUp();
    const input = { argv: ['python3', 'build.py'] };
    await writeFile(join(workspace, 'build.py'), 'print("good")');
    const allowed = String(await seal(input));
    expect((await call('exec', input, { seal: allowed })).text).toContain('good');
    await writeFile(join(workspace, 'build.py'), 'print("evil")');
    const changed = await call('exec', input, { seal: allowed });
    expect(changed).toMatchObject({
      failure: 'blocked',
      text: expect.stringContaining('approved'),
    });
  });

  test('is what runs, however often it is exchanged meanwhile', async () => {
    const { call, seal, workspace } = await setUp();
    const path = join(workspace, 'tool.sh');
    const put = async (what: string) => {
      await writeFile(`${path}.new`, `#!/bin/sh\necho ${what}\n`);
      await chmod(`${path}.new`, 0o755);
      await rename(`${path}.new`, path);
    };
    await put('good');
    await chmod(path, 0o755);
    const allowed = String(await seal({ argv: ['./tool.sh'] }));
    const swaps = { count: 0, isOver: false };
    const swapping = (async () => {
      while (!swaps.isOver || swaps.count < 1000) {
        await writeFile(path, `#!/bin/sh\necho ${swaps.count % 2 === 0 ? 'evil' : 'good'}\n`);
        swaps.count += 1;
      }
    })();
    const outcomes = [];
    for (let run = 0; run < 30; run += 1) {
      outcomes.push(await call('exec', { argv: ['./tool.sh'] }, { seal: allowed }));
    }
    swaps.isOver = true;
    await swapping;
    expect(outcomes.filter(({ text }) => text.includes('evil'))).toEqual([]);
    expect(swaps.count).toBeGreaterThanOrEqual(1000);
  });
});

describe('what a program may', () => {
  test('is never more than the person may: no notes of others, no writing for who may not write', async () => {
    const { call, workspace } = await setUp();
    for (const path of ['people/ann/memory', 'people/bob', 'memory']) {
      await mkdir(join(workspace, path), { recursive: true });
      await writeFile(join(workspace, path, 'note.md'), `note of ${path}`);
    }
    await writeFile(join(workspace, 'USER.md'), 'about the owner');
    const ann = { person: { notes: 'people/ann/' } };
    const script =
      'cat people/*/*.md people/*/*/*.md memory/*.md USER.md; echo x > people/ann/x; true';
    const seen = (await call('exec', { script }, ann)).text;
    expect(seen).toContain('note of people/ann/memory');
    expect(seen).not.toMatch(/people\/bob|note of memory|about the owner/);
    const reader = { rights: { ...ALL_RIGHTS, write: 'never' as const } };
    const written = await call('exec', { script: 'cat hello.txt; echo x > made' }, reader);
    expect(written.text).toMatch(/line one(?:.|\n)*Read-only file system/);
    const blind = { rights: { ...ALL_RIGHTS, read: 'never' as const } };
    expect(await call('exec', { argv: ['ls'] }, blind)).toMatchObject({ failure: 'permission' });
    const off = await setUp({ sandbox: 'off' });
    expect(await off.call('exec', { argv: ['ls'] }, ann)).toMatchObject({ failure: 'permission' });
  });

  test('is what the configuration says of folders, network and environment', async () => {
    const env = { GREETING: 'hello', API_KEY: 'sk-live-secret', LD_AUDIT: 'x', OTHER: 'other' };
    const { call } = await setUp({ env: ['GREETING', 'API_KEY'], network: 'on' }, env);
    const { text } = await call('exec', { script: 'env; cat /proc/net/route; node -v' });
    expect(text).toContain('GREETING=hello');
    expect(text).not.toMatch(/API_KEY|LD_AUDIT|OTHER/);
    expect(text).toContain(process.version);
    const code = await call('execute_code', { code: 'console.log(1)' });
    expect(code).toMatchObject({ isForeign: true });
    const names = ['NODE_OPTIONS', 'LD_PRELOAD', 'PYTHONPATH', 'JAVA_TOOL_OPTIONS', 'BASH_ENV'];
    expect(names.filter((name) => !isLoaderVariable(name))).toEqual([]);
    const tools = { exec: { env: ['NODE_OPTIONS'] } };
    expect(configSchema.safeParse({ tools }).success).toBe(false);
  });

  test('is nothing where there is no sandbox, unless an owner switched it off', async () => {
    expect(idle.isAvailable()).toBe(false);
    expect(idle.unavailableBecause()).toBe('none here. Install one.');
    const { toolbox } = await setUp({ enabled: false });
    expect(toolbox.offered(ALL_RIGHTS).specs).toEqual([]);
    const other = await setUp({
      sandbox: process.platform === 'linux' ? 'seatbelt' : 'bubblewrap',
    });
    expect(other.executor.unavailableBecause()).toMatch(/ is of (Linux|macOS) only/);
  });

  test('is denied on macOS in the words of its sandbox', () => {
    const profile = seatbeltProfile(
      {
        ...{ workspace: '/Users/a/ws', isWritable: true, cwd: '/Users/a/ws', hasNetwork: false },
        ...{ extraReadOnly: ['/opt/x'], forbidden: ['/Users/a/ws/"home'], replaced: [] },
        ...{ scriptFolder: '/tmp/s', scratchBytes: 1 },
        shields: { ...NO_SHIELDS, hidden: [{ path: '/Users/a/ws/.env', kind: 'file' }] },
      },
      '/usr/local/bin/node',
    );
    expect(profile.split('\n').slice(0, 2)).toEqual(['(version 1)', '(deny default)']);
    expect(profile).toContain('(deny file* (subpath "/Users/a/ws/\\"home"))');
    expect(profile.indexOf('(deny file* (subpath "/Users/a/ws/.env"))')).toBeGreaterThan(
      profile.indexOf('(allow file* (subpath "/Users/a/ws"))'),
    );
    expect(profile).toContain('(deny network*)');
  });
});
