// The gateway's token where a person configured none: made at the first start and kept in a file of
// its own, so that the configuration can be shown and copied without it.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { writeAtomic } from '../../../lib/files/files.ts';
import type { Home } from './home.ts';

const TOKEN_BYTES = 32;

/** Empty where none was made yet. */
export async function readMadeToken(home: Home): Promise<string> {
  try {
    return (await readFile(home.token, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}

/** Makes the token where there is none; true where it was made now. */
export async function ensureMadeToken(home: Home): Promise<boolean> {
  if ((await readMadeToken(home)) !== '') return false;
  await renewMadeToken(home);
  return true;
}

/** Replaces the token by another one. */
export async function renewMadeToken(home: Home): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  await writeAtomic(home.token, `${token}\n`);
  return token;
}
