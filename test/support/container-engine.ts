// A stand-in for the command of docker or podman, where no engine runs: it takes the flags that both
// have and no other, refuses what they refuse, and runs the command in bubblewrap with the mounts, the
// user and the network it was told. Like theirs, a container outlives the command that started it. It
// holds no amounts of memory, processors or processes: those are the engine's, and only recorded.

import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const IMAGE = 'programs:1';

export interface StandInEngine extends AsyncDisposable {
  /** Where its command lies. */
  readonly path: string;
  /** Each call: its arguments and its environment. */
  calls(): Promise<readonly EngineCall[]>;
  /** Of containers that run, or were not taken away. */
  names(): readonly string[];
  stopAnswering(): Promise<void>;
  /** From now on it says this whenever it runs something. */
  complain(words: string): Promise<void>;
}

export type EngineCall = {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

export async function startContainerEngine(name: 'docker' | 'podman'): Promise<StandInEngine> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'nanobot-engine-')));
  const state = join(folder, 'state');
  await mkdir(state);
  await writeFile(join(folder, 'calls'), '');
  const command = join(folder, name);
  const program = join(import.meta.dirname, 'container-engine-command.ts');
  const words = [process.execPath, '--disable-warning=ExperimentalWarning', program, name, folder];
  const quoted = words.map((word) => `'${word}'`).join(' ');
  await writeFile(command, `#!/bin/sh\nexec ${quoted} "$@"\n`);
  await chmod(command, 0o755);
  const names = () => {
    const { stdout } = spawnSync(command, ['ps', '-aq'], { encoding: 'utf8', env: {} });
    return stdout.split('\n').filter(Boolean);
  };
  return {
    path: folder,
    names,
    async calls() {
      const lines = (await readFile(join(folder, 'calls'), 'utf8')).split('\n').filter(Boolean);
      return lines.map((line) => JSON.parse(line) as EngineCall);
    },
    stopAnswering: () => writeFile(join(folder, 'down'), ''),
    complain: (words) => writeFile(join(folder, 'complaint'), words),
    async [Symbol.asyncDispose]() {
      const left = names();
      if (left.length > 0) spawnSync(command, ['rm', '--force', ...left], { env: {} });
      await rm(folder, { recursive: true, force: true });
    },
  };
}
