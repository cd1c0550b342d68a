// Where the audit lies: its files, how a line is added to the newest, and the word of the store on where
// it ends.

import { type FileHandle, open, readdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { KeyValueStore } from '../bus/store/store.ts';
import { type AuditHead, type AuditLine, readHead, readLine } from './audit-chain.ts';

const HEAD_KEY = 'head';
const FILE_MODE = 0o600;
const TAIL_BYTES = 65_536;
const NUMBER_DIGITS = 4;
const NUMBER = /\.(\d{4})\.jsonl$/;
const NEWLINE = 0x0a;

export const keepHead = (state: KeyValueStore, head: AuditHead) =>
  state.set(HEAD_KEY, JSON.stringify(head));

/** `isSynced`: it survives a power cut too, not the end of the process alone. */
export async function append(path: string, text: string, isSynced: boolean): Promise<void> {
  const file = await open(path, 'a+', FILE_MODE);
  try {
    await cutTornLine(file);
    await file.appendFile(text);
    if (isSynced) await file.sync();
  } finally {
    await file.close();
  }
}

/** What a kill left of a line was never counted. */
async function cutTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const length = Math.min(size, TAIL_BYTES);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  const end = buffer.lastIndexOf(NEWLINE) + 1;
  if (length > 0 && end < length) await file.truncate(size - length + end);
}

export async function turnOver(path: string, maxBytes: number): Promise<void> {
  const size = await stat(path).then(
    (info) => info.size,
    () => 0,
  );
  if (size < maxBytes) return;
  // One that was moved away leaves its number empty.
  const newest = NUMBER.exec((await olderFiles(path)).at(-1) ?? '')?.[1] ?? 0;
  const number = String(Number(newest) + 1).padStart(NUMBER_DIGITS, '0');
  await rename(path, path.replace(/\.jsonl$/, `.${number}.jsonl`));
}

/** Oldest first. */
export async function olderFiles(path: string): Promise<readonly string[]> {
  const stem = basename(path, '.jsonl');
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const isOlder = (name: string) => name.startsWith(`${stem}.`) && NUMBER.test(name);
  return names
    .filter(isOlder)
    .sort()
    .map((name) => join(dirname(path), name));
}

/** Undefined where it cannot be read. */
export const keptHead = async (state: KeyValueStore) => readHead(await state.get(HEAD_KEY));

export async function lastLine(path: string): Promise<AuditLine | undefined> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString('utf8').split('\n').map(readLine);
    return lines.findLast((line) => line !== undefined);
  } finally {
    await file.close();
  }
}
