// Back-ups of a large home: time and highest memory of the command, the first time, again without
// a change, and restored. A tenth of the content does not compress; the rest is conversations.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { figure, header, row } from './table.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const GB = 1_000_000_000;
const FILE_BYTES = 20_000_000;
const BLOCK_BYTES = 1_000_000;
const LOOK_MS = 20;
const SMALL_FILES = 5000;
const SMALL_BYTES = 4000;

/** NANOBOT_BENCH_GB: the size of the home, 2 unless told. */
export async function backup(): Promise<void> {
  const size = Number(process.env['NANOBOT_BENCH_GB'] ?? 2) * GB;
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-backup-'));
  const home = join(folder, 'home');
  const place = join(folder, 'place');
  try {
    await makeHome(home, size);
    header(`${size / GB} GB home`, 'seconds', 'highest RSS MB');
    const create = ['backup', 'create', '--to', place];
    await measured('first back-up', home, create);
    await measured('again, nothing changed', home, create);
    await measured('restore', home, [
      'backup',
      'restore',
      '--from',
      place,
      '--into',
      join(folder, 'again'),
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeHome(home: string, size: number): Promise<void> {
  await mkdir(join(home, 'media'), { recursive: true });
  await mkdir(join(home, 'sessions'), { recursive: true });
  await writeFile(join(home, 'config.json'), '{"version":1}');
  const line = (at: number) =>
    `{"role":"user","at":${at},"text":"${randomBytes(30).toString('base64')} is what was said then"}\n`;
  const text = Buffer.from(Array.from({ length: BLOCK_BYTES / 100 }, (_, at) => line(at)).join(''));
  for (let made = 0, file = 0; made < size; made += FILE_BYTES, file += 1) {
    const handle = await open(join(home, 'media', `file-${file}`), 'w');
    for (let bytes = 0; bytes < FILE_BYTES; bytes += BLOCK_BYTES) {
      const block = Buffer.concat([
        Buffer.from(`${made + bytes}`),
        file % 10 === 0 ? randomBytes(BLOCK_BYTES) : text,
      ]);
      await handle.write(block.subarray(0, BLOCK_BYTES));
    }
    await handle.close();
  }
  for (let file = 0; file < SMALL_FILES; file += 1) {
    const name = `bench%3A${file}_2026-01-01.jsonl`;
    await writeFile(join(home, 'sessions', name), text.subarray(file, file + SMALL_BYTES));
  }
}

async function measured(what: string, home: string, args: readonly string[]): Promise<void> {
  const begun = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, NANOBOT_HOME: home },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(child, 'exit');
  let peak = 0;
  let isOver = false;
  void exited.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1000);
    await delay(LOOK_MS);
  }
  const [code] = await exited;
  if (code !== 0) throw new Error(`${what} ended with ${code}`);
  row(what, figure((performance.now() - begun) / 1000), figure(peak));
}
