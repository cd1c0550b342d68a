// Earlier versions of the configuration, so that a change can be undone: each version that was loaded
// or saved, as a file of its own that only its user can read. They hold the secrets of that time.

import { hash } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode, textIfThere, writeAtomic } from '../../../lib/files/files.ts';
import type { Home } from './home.ts';

const MAX_VERSIONS = 50;
const FOLDER_MODE = 0o700;
/** The time of the file in milliseconds, and the start of its hash: a version has one name. */
const NAME = /^(\d{13})-[0-9a-f]{12}\.json$/;

type ConfigVersion = {
  /** The name of its file without the end. */
  readonly id: string;
  /** Epoch milliseconds: when it was written. */
  readonly at: number;
  readonly text: string;
};

/** Keeps the configuration as it is in the file now; without a file, nothing. */
export async function keepVersion(home: Home): Promise<void> {
  const text = await textIfThere(home.config);
  if (text === undefined) return;
  const { mtimeMs } = await stat(home.config);
  const end = `-${hash('sha256', text).slice(0, 12)}.json`;
  await mkdir(home.configHistory, { recursive: true, mode: FOLDER_MODE });
  const names = await versionNames(home);
  const newest = names[0];
  if (newest?.endsWith(end) === true) return;
  await writeAtomic(join(home.configHistory, `${Math.floor(mtimeMs)}${end}`), text);
  for (const old of names.slice(MAX_VERSIONS - 1)) {
    await rm(join(home.configHistory, old), { force: true });
  }
}

/** The newest first. */
export async function configVersions(home: Home): Promise<readonly ConfigVersion[]> {
  const versions: ConfigVersion[] = [];
  for (const name of await versionNames(home)) {
    const text = await textIfThere(join(home.configHistory, name));
    const [, at = ''] = NAME.exec(name) ?? [];
    // Two processes may have kept the same version.
    if (text === undefined || versions.at(-1)?.text === text) continue;
    versions.push({ id: name.slice(0, -'.json'.length), at: Number(at), text });
  }
  return versions;
}

async function versionNames(home: Home): Promise<readonly string[]> {
  const names = await readdir(home.configHistory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => NAME.test(name)).toSorted((one, other) => (one < other ? 1 : -1));
}
