// Scripts of the model, written where the program that runs them can read but not change them.

import { mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const INTERPRETERS = ['sh', 'bash', 'python3', 'node', 'perl', 'ruby'] as const;
export type Interpreter = (typeof INTERPRETERS)[number];

export type Script = {
  readonly kind: 'script';
  readonly interpreter: Interpreter;
  readonly code: string;
};

/** File extensions by which a program or a person recognises the language. */
const NAMES: Readonly<Record<Interpreter, string>> = {
  sh: 'script.sh',
  bash: 'script.sh',
  python3: 'script.py',
  node: 'script.mts',
  perl: 'script.pl',
  ruby: 'script.rb',
};

const PREFIX = 'nanobot-exec-';

/** Removes folders of killed processes. `before`: epoch milliseconds; newer ones may be in use. */
export async function removeOldFolders(before: number): Promise<void> {
  const names = await readdir(tmpdir());
  for (const name of names.filter((each) => each.startsWith(PREFIX))) {
    const path = join(tmpdir(), name);
    const info = await stat(path).catch(() => undefined);
    const isOurs = info?.uid === process.getuid?.() && (info?.mtimeMs ?? before) < before;
    if (isOurs) await rm(path, { recursive: true, force: true });
  }
}

/** Runs `work` with a folder of its own, removed afterwards, readable by this user alone. */
export async function inScriptFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), PREFIX)));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Returns the name of its file. */
export async function writeScript(folder: string, { interpreter, code }: Script): Promise<string> {
  const name = NAMES[interpreter];
  await writeFile(join(folder, name), code, { mode: 0o600, flag: 'wx' });
  return name;
}
