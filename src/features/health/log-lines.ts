// Reads the log for the page: the newest lines first, back to a limit, then those that are added.

import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/time/clock.ts';
import type { LogPart } from './rules/views.ts';

const LOG_FILE = /^nanobot\.\d{4}-\d{2}-\d{2}\.log$/;
const MAX_LINES = 100_000;
const BLOCK_BYTES = 256 * 1024;
const LOOK_MS = 500;
const NEWLINE = 0x0a;

/** Oldest first. */
async function logFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .filter((name) => LOG_FILE.test(name))
    .sort()
    .map((name) => join(folder, name));
}

export async function* logParts(
  folder: string,
  clock: Pick<Clock, 'sleep'>,
  signal: AbortSignal,
): AsyncGenerator<LogPart, void, void> {
  const files = await logFiles(folder);
  let file = files.at(-1);
  let offset = file === undefined ? 0 : await endOf(file);
  let left = MAX_LINES;
  for (const path of files.toReversed()) {
    const end = path === file ? offset : undefined;
    for await (const lines of linesBackwards(path, end)) {
      if (signal.aborted || left <= 0) break;
      const part = lines.slice(-left);
      left -= part.length;
      yield { place: 'older', lines: part };
    }
  }
  while (!signal.aborted) {
    for await (const [lines, end] of file === undefined ? [] : linesFrom(file, offset)) {
      offset = end;
      yield { place: 'newer', lines };
    }
    const newest = (await logFiles(folder)).at(-1);
    if (newest !== file) {
      file = newest;
      offset = 0;
      continue;
    }
    await clock.sleep(LOOK_MS, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

async function reading<T>(path: string, run: (file: FileHandle) => Promise<T>): Promise<T> {
  await using file = await open(path, 'r');
  return await run(file);
}

async function block(path: string, from: number, to: number): Promise<Buffer> {
  return reading(path, async (file) => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(to - from), 0, to - from, from);
    return buffer.subarray(0, bytesRead);
  });
}

const sizeOf = (path: string) => reading(path, async (file) => (await file.stat()).size);

/** Where its last whole line ends. */
async function endOf(path: string): Promise<number> {
  let end = await sizeOf(path);
  while (end > 0) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const at = (await block(path, start, end)).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

const linesOf = (content: Buffer) =>
  content
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');

async function* linesBackwards(
  path: string,
  end?: number,
): AsyncGenerator<readonly string[], void, void> {
  let rest: Buffer = Buffer.alloc(0);
  for (let to = end ?? (await sizeOf(path)); to > 0; ) {
    const from = Math.max(0, to - BLOCK_BYTES);
    const content = Buffer.concat([await block(path, from, to), rest]);
    // The line that begins before the block is whole with the next one.
    const start = from === 0 ? 0 : content.indexOf(NEWLINE) + 1;
    rest = start === 0 && from > 0 ? content : content.subarray(0, start);
    const lines = from > 0 && start === 0 ? [] : linesOf(content.subarray(start));
    if (lines.length > 0) yield lines;
    to = from;
  }
}

/** Whole lines, each time with the place where they end. */
async function* linesFrom(
  path: string,
  begin: number,
): AsyncGenerator<readonly [lines: string[], end: number], void, void> {
  const size = await sizeOf(path).catch(() => 0);
  let rest: Buffer = Buffer.alloc(0);
  let from = begin > size ? 0 : begin;
  while (from < size) {
    const content = Buffer.concat([
      rest,
      await block(path, from, Math.min(size, from + BLOCK_BYTES)),
    ]);
    from += content.length - rest.length;
    const end = content.lastIndexOf(NEWLINE) + 1;
    rest = content.subarray(end);
    const lines = linesOf(content.subarray(0, end));
    if (lines.length > 0) yield [lines, from - rest.length];
  }
}
