// Case group X against the tools that run programs: 600 attempts and more, in the sandbox of this
// machine, around secrets that a test would recognise in any output, and a machine that has to be
// afterwards what it was before.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createPromptSources } from '../../src/agent/prepared.ts';
import { writeAccessOf } from '../../src/agent/rules/taint.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createExec, createExecuteCode } from '../../src/tools/exec/exec.ts';
import { createTestExecutor } from '../support/executor.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestSkills } from '../support/test-skills.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';
import {
  environmentAttacks,
  interpreterAttacks,
  kernelAttacks,
  LITERAL_WORDS,
  networkAttacks,
  type Places,
  readAttacks,
  wrapperAttacks,
  writeAttacks,
} from './exec-attack-cases.ts';

const CANARY = 'canary-7f3b91c2';
const OWN_RULES = '# the rules of the owner';
const WIDE = { limits: { outputBytes: 10_000_000, maxProcesses: 100, memoryMb: 400 } };
const counted = { attempts: 0 };

const write = async (path: string, content: string) => {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, content);
};

/** Servers of this machine that no program may reach; how often one did. */
async function listen(home: string) {
  const abstractSocket = `nanobot-test-${randomUUID()}`;
  const heard = { hits: 0 };
  const servers = [
    { port: 0, host: '127.0.0.1' },
    `\0${abstractSocket}`,
    join(home, 'gateway.sock'),
  ];
  const started = servers.map(async (where) => {
    const server = createServer((socket) => {
      heard.hits += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(where, resolve));
    onTestFinished(() => void server.close());
    return server.address();
  });
  const [address] = await Promise.all(started);
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { abstractSocket, heard, port };
}

async function createWorld(config: object = WIDE) {
  const fixture = await createWorkspace({ maxResultChars: 10_000_000 });
  const { home, workspace } = fixture;
  const outside = await temporaryFolder();
  const names = ['config.json', 'state.db', 'gateway-token', '.ssh/id_ed25519'];
  const protectedNames = [
    ...['.env', 'app/.env.local', 'app/deep/er/.env', '.ssh/id_rsa', 'keys/server.pem'],
    ...['keys/client.key', '.aws/credentials'],
  ];
  const secrets = [
    ...names.map((name) => join(home, name)),
    ...protectedNames.map((name) => join(workspace, name)),
    join(outside, 'secret.txt'),
  ];
  const kept = [
    ...['AGENTS.md', 'memory/MEMORY.md', 'skills/good/SKILL.md', '.git/config'],
    ...['profiles/quick.yaml', 'workflows/tidy.yaml', 'capabilities/look.yaml'],
    ...['people/ann/memory/MEMORY.md', '.git/hooks/pre-commit', 'CONTEXT-telegram.md'],
  ].map((name) => join(workspace, name));
  for (const path of secrets) await write(path, `${CANARY} ${path}\n`);
  for (const path of kept) await write(path, OWN_RULES);
  await symlink(join(home, 'config.json'), join(workspace, 'link-to-config'));
  const { heard, ...net } = await listen(home);
  const executor = await createTestExecutor({
    home,
    config,
    env: { ...process.env, API_KEY: CANARY, NANOBOT_TOKEN: CANARY, LD_PRELOAD: CANARY },
  });
  const places: Places = { home, workspace, outside, pid: process.pid, ...net };
  const context = { ...fixture.context, clock: systemClock };
  const before = await outsideOf(places);
  return {
    ...fixture,
    exec: createExec(executor),
    executor,
    context,
    places,
    secrets,
    kept,
    heard,
    before,
  };
}

type World = Awaited<ReturnType<typeof createWorld>>;

/** What there is around the workspace, and in it what later turns and git follow. */
async function outsideOf({ home, outside, workspace }: Places) {
  const followed = ['.git/hooks', 'skills', 'memory', 'people'].map((name) =>
    join(workspace, name),
  );
  const folders = [home, join(home, '.ssh'), outside, ...followed];
  const names = await Promise.all(folders.map((folder) => readdir(folder)));
  const top = await readdir(workspace);
  return [...names, top.filter((name) => writeAccessOf(name, false) === 'rules')];
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** What a run printed, whether it succeeded or not. */
const printed = (run: Promise<string>) =>
  run.catch((error: { readonly output?: string; readonly message: string }) =>
    [error.message, error.output].join('\n'),
  );

/** All in one sandbox, one after the other; what each printed, and how it ended. */
async function attack({ exec, context }: World, attacks: readonly string[], mayHang = true) {
  counted.attempts += attacks.length;
  const lines = attacks.flatMap((text, index) => [
    `${mayHang ? 'timeout -s KILL 2 ' : ''}sh -c ${quoted(text)} < /dev/null`,
    `echo "\n#${index} $?"`,
  ]);
  const script = `cd "$HOME"\n{\n${lines.join('\n')}\n} > /tmp/out 2>&1\ncat -v /tmp/out`;
  const output = await printed(exec.run({ script, timeout_secs: 30 }, context));
  const endings = [...output.matchAll(/^#(\d+) (\d+)$/gm)];
  const succeeded = endings
    .filter(([, , code]) => code === '0')
    .map(([, at]) => attacks[Number(at)]);
  expect(endings).toHaveLength(attacks.length);
  return { output, succeeded };
}

/** The machine is what it was, and nobody was asked for anything. */
async function expectIntact({ places, before, secrets, kept, heard }: World) {
  expect(await outsideOf(places)).toEqual(before);
  for (const path of secrets) expect(await readFile(path, 'utf8')).toContain(CANARY);
  for (const path of kept) expect(await readFile(path, 'utf8')).toBe(OWN_RULES);
  expect(heard.hits).toBe(0);
}

const filling = (folder: string) =>
  `for i in $(seq 60); do head -c 20000000 /dev/zero > ${folder}/x$i || exit 1; done`;

afterAll(() => expect(counted.attempts).toBeGreaterThanOrEqual(600));

describe('a program that the agent runs', () => {
  test('reads, reaches and changes nothing of others, in whatever it is wrapped', async () => {
    const tables = [
      { name: 'reading', of: readAttacks, mayHang: false },
      { name: 'environment', of: () => environmentAttacks, mayHang: true },
      { name: 'network', of: networkAttacks, mayHang: true },
      { name: 'writing', of: writeAttacks, mayHang: false },
      { name: 'wrappers', of: wrapperAttacks, mayHang: true },
      { name: 'interpreters', of: interpreterAttacks, mayHang: true },
    ];
    const runs = tables.map(async ({ name, of, mayHang }) => {
      const world = await createWorld();
      const { output } = await attack(world, of(world.places), mayHang);
      expect(output, name).not.toContain(CANARY);
      expect(output, name).not.toMatch(/^(?:root|daemon):/m);
      await expectIntact(world);
    });
    await Promise.all(runs);
    const planted = [
      '/etc/planted',
      '/usr/bin/planted',
      '/var/tmp/planted-by-exec',
      '/dev/planted',
    ];
    expect(planted.filter((path) => existsSync(path))).toEqual([]);
  });

  test('does not get out by what the kernel offers', async () => {
    const world = await createWorld();
    const { output, succeeded } = await attack(world, kernelAttacks(world.places));
    expect(succeeded).toEqual([]);
    expect(output).not.toContain(CANARY);
    await expectIntact(world);
  });

  test('gets its words as they were written', async () => {
    const { exec, context } = await createWorld();
    counted.attempts += LITERAL_WORDS.length;
    const argv = ['node', '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--'];
    const output = await exec.run({ argv: [...argv, ...LITERAL_WORDS] }, context);
    expect(JSON.parse(output.slice(output.indexOf('\n')))).toEqual(LITERAL_WORDS);
  });

  test('uses up no more than it may', async () => {
    const bombs: readonly (readonly [name: string, script: string, told: RegExp])[] = [
      // It ends by itself: for an administrator, as whom tests may run, the kernel counts no processes.
      [
        'processes',
        'b() { [ $1 = 0 ] || { b $(($1-1)) & b $(($1-1)) & sleep 5; }; }; b 9',
        /processes|fork|Cannot/,
      ],
      [
        'threads',
        'python3 -c "import threading,time\nfor i in range(1000): threading.Thread(target=time.sleep,args=(9,),daemon=True).start()"',
        /processes|start new thread/,
      ],
      [
        'memory',
        'python3 -c "a=[]\nwhile 1: a.append(bytearray(20_000_000))"',
        /memory|MemoryError/,
      ],
      ['shared memory', filling('/dev/shm'), /No space left/],
      ['scratch', filling('/tmp'), /No space left/],
      [
        'memory by many',
        'for i in 1 2 3 4 5 6; do python3 -c "import time; x=bytearray(150_000_000); time.sleep(9)" & done; wait',
        /memory/,
      ],
      ['a large file', 'head -c 60000000 /dev/zero > big', /too large|SIGXFSZ|File size/],
      [
        'many files',
        'i=0; while :; do i=$((i+1)); head -c 9000000 /dev/zero > "f$i" || exit 1; done',
        /on the disk/,
      ],
      ['processor time', 'while :; do :; done', /processor time|SIGKILL/],
      ['output', 'yes | head -c 30000000', /29,9\d\d,\d\d\d bytes left out/],
      ['endless output', 'yes', /of output|processor time/],
    ];
    const limits = {
      memoryMb: 400,
      maxProcesses: 30,
      // Python alone takes one to start on a slow machine.
      cpuSecs: 4,
      maxFileMb: 50,
      maxDiskMb: 100,
      outputBytes: 50_000,
    };
    counted.attempts += bombs.length;
    // One by one: the watch needs its share of the machine, which ten bombs at once would not leave it.
    for (const [name, script, told] of bombs) {
      const { exec, context } = await createWorld({ limits });
      const input = { script, interpreter: 'bash', timeout_secs: 120 } as const;
      const output = await printed(exec.run(input, context));
      expect(output, name).toMatch(told);
      expect(output.length, name).toBeLessThan(200_000);
    }
  });

  test('unpacks no archive to where it does not belong', async () => {
    const world = await createWorld();
    const { home, outside } = world.places;
    const names = [
      '../planted',
      '../../planted',
      `${home}/planted`,
      `${outside}/planted`,
      '/etc/planted',
    ];
    const made = `import io,os,sys,tarfile,zipfile
for n, name in enumerate(${JSON.stringify([...names, 'a/../../planted', 'AGENTS.md', 'memory/MEMORY.md'])}):
    with tarfile.open(f"a{n}.tar", "w") as t:
        link = tarfile.TarInfo("way"); link.type = tarfile.SYMTYPE; link.linkname = os.path.dirname(name) or "."; t.addfile(link)
        for path in (name, "way/planted"):
            info = tarfile.TarInfo(path); info.size = 7; t.addfile(info, io.BytesIO(b"PLANTED"))
    with zipfile.ZipFile(f"a{n}.zip", "w") as z:
        z.writestr(name, "PLANTED")
for n in range(8):
    for how in (lambda: tarfile.open(f"a{n}.tar").extractall(), lambda: zipfile.ZipFile(f"a{n}.zip").extractall()):
        try: how()
        except Exception as e: print(type(e).__name__)
    os.system(f"tar -xPf a{n}.tar --overwrite; rm -rf way; tar -xf a{n}.tar; unzip -o a{n}.zip; rm -rf way")`;
    counted.attempts += 8 * 5;
    const run = createExecuteCode(world.executor);
    await printed(run.run({ language: 'python', code: made, files: true }, world.context));
    await expectIntact(world);
  });

  test('leaves no link behind by which other tools get out', async () => {
    const world = await createWorld();
    const { home, outside, workspace } = world.places;
    const targets = [
      `${home}/config.json`,
      `${outside}/secret.txt`,
      home,
      outside,
      '/etc/passwd',
      '/',
      '/proc/self/environ',
      '..',
    ];
    const links = targets.map((target, index) => `ln -s ${target} link-${index}`);
    const rules = ['SOUL.md', 'CONTEXT.md', 'CONTEXT-web.md'].map(
      (name) => `ln -s ${home}/config.json ${name}`,
    );
    const script = [...links, ...rules, 'mkfifo pipe', 'ln .env hard'].join('\n');
    await printed(world.exec.run({ script }, world.context));
    const calls = targets.flatMap((_target, index) => {
      const path = `link-${index}`;
      return [
        ...['', '/config.json', '/secret.txt'].map((below) => [
          'read_file',
          { path: path + below },
        ]),
        ['list_dir', { path }],
        ['write_file', { path: `${path}/planted`, content: 'PLANTED' }],
        ['edit_file', { path, old_text: CANARY, new_text: 'PLANTED' }],
        ['send_file', { paths: [path] }],
        ['send_file', { paths: [`${path}/config.json`] }],
      ] as const;
    });
    counted.attempts += calls.length;
    for (const [name, input] of calls) {
      expect((await world.call(String(name), input)).status).toBe('failed');
    }
    expect(world.sent).toEqual([]);
    const sources = createPromptSources({
      workspace: () => workspace,
      memoryText: async () => '',
      skills: createTestSkills(workspace),
      redact: (text) => text,
    });
    expect(JSON.stringify(await sources.read('web', ''))).not.toContain(CANARY);
    await expectIntact(world);
  });
});
