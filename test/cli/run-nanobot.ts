// The real program as a child process: what it prints, what it leaves with.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { COMPILE_CACHE } from '../support/compile-cache.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
/** Made before system tests, and used by all others of the run too. */
const PACKAGE = process.env['NANOBOT_TEST_PACKAGE'];
const ROOT = PACKAGE ?? CHECKOUT;
const SOURCES = join(CHECKOUT, 'src/main.ts');
/** The program, to be started by Node. */
export const MAIN = PACKAGE === undefined ? SOURCES : join(PACKAGE, 'test/support/nanobot');

export type Run = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

export type RunOptions = {
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of the package, whose bundle does not tell which sources are loaded. */
  readonly isFromSources?: true;
  /** What stands on its standard input. */
  readonly input?: string;
  /** All of its standard output so far, each time there is more; `interrupt` is Ctrl+C. */
  readonly onOutput?: (printed: string, interrupt: () => void, pid: number | undefined) => void;
};

export async function runNanobot(args: readonly string[], options: RunOptions): Promise<Run> {
  const { home, env = {}, input = '', onOutput } = options;
  const child = spawn(process.execPath, [options.isFromSources ? SOURCES : MAIN, ...args], {
    cwd: ROOT,
    env: {
      ...COMPILE_CACHE,
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      NANOBOT_HOME: home,
      TZ: 'UTC',
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  if (onOutput !== undefined) {
    let printed = '';
    child.stdout.on('data', (part: Buffer) => {
      printed += part.toString();
      onOutput(printed, () => void child.kill('SIGINT'), child.pid);
    });
  }
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([
    once(child, 'exit'),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code: code as number | null, stdout, stderr };
}

export interface TemporaryHome extends AsyncDisposable {
  readonly path: string;
  writeConfig(config: unknown): Promise<void>;
}

export async function temporaryHome(): Promise<TemporaryHome> {
  const path = await mkdtemp(join(tmpdir(), 'nanobot-cli-'));
  return {
    path,
    writeConfig: (config) =>
      writeFile(join(path, 'config.json'), JSON.stringify(config), { mode: 0o600 }),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}
