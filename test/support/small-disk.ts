// A disk of a few megabytes that a test fills and empties; only where this user may mount one.

import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PIECE = Buffer.alloc(4096);
/** Fails only where the disk is full. */
const MAX_PIECES = 100_000;

export type SmallDisk = Disposable & {
  /** Everybody may write there. */
  readonly folder: string;
  fill(): void;
  empty(): void;
};

export function mountSmallDisk(megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'nanobot-disk-'));
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0777`];
    execFileSync('mount', [...options, 'tmpfs', folder], { stdio: 'ignore' });
  } catch (error) {
    rmdirSync(folder);
    throw error;
  }
  const filler = join(folder, 'filler');
  return {
    folder,
    fill() {
      try {
        for (let piece = 0; piece < MAX_PIECES; piece += 1) appendFileSync(filler, PIECE);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    },
    empty: () => rmSync(filler),
    [Symbol.dispose]() {
      execFileSync('umount', [folder]);
      rmdirSync(folder);
    },
  };
}

export function canMount(): boolean {
  try {
    mountSmallDisk(1)[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}
