// What was made of stored contents, so that it is made once: a text, a smaller image. A file may
// vanish at any time and is made again then; it does not outlive what it was made of for long.

import { mkdir, readdir, readFile, rm, stat, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomic } from '../../lib/files/files.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MediaId } from '../message/ids.ts';

/** `reading`: how many readings of the content ended with the process. */
export type DerivedKind = 'image' | 'text' | 'reading';

export interface DerivedFiles {
  read(id: MediaId, kind: DerivedKind): Promise<Uint8Array | undefined>;
  /** A disk that is full costs the next reader the work, and nobody anything else. */
  keep(id: MediaId, kind: DerivedKind, content: Uint8Array): Promise<void>;
  drop(id: MediaId, kind: DerivedKind): Promise<void>;
  sweep(unusedMs: number): Promise<void>;
}

const MAX_BYTES = 500_000_000;
/** After this many new files the folder is looked through. */
const LOOK_EVERY = 50;
const NAME = /^[0-9a-f]{64}\.(?:image|text|reading)$/;

/** `folder` is made when something is kept first. */
export function createDerivedFiles(folder: string, clock: Clock): DerivedFiles {
  const state = { kept: 0 };
  const pathOf = (id: MediaId, kind: DerivedKind) => join(folder, `${id}.${kind}`);

  async function sweep(unusedMs: number): Promise<void> {
    const before = clock.now() - unusedMs;
    let total = 0;
    for (const { path, sizeBytes, usedAt } of await newestFirst(folder)) {
      total += sizeBytes;
      if (usedAt < before || total > MAX_BYTES) await unlink(path).catch(() => undefined);
    }
  }

  return {
    async read(id, kind) {
      const path = pathOf(id, kind);
      const content = await readFile(path).catch(() => undefined);
      const now = clock.now() / 1000;
      if (content !== undefined) await utimes(path, now, now).catch(() => undefined);
      return content;
    },
    async keep(id, kind, content) {
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeAtomic(pathOf(id, kind), content);
        const now = clock.now() / 1000;
        await utimes(pathOf(id, kind), now, now);
        state.kept += 1;
        if (state.kept % LOOK_EVERY === 0) await sweep(Number.POSITIVE_INFINITY);
      } catch {
        return;
      }
    },
    drop: (id, kind) => rm(pathOf(id, kind), { force: true }).catch(() => undefined),
    sweep,
  };
}

async function newestFirst(folder: string) {
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name));
  const files = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const info = await stat(path).catch(() => undefined);
      return { path, sizeBytes: info?.size ?? 0, usedAt: info?.mtimeMs ?? 0 };
    }),
  );
  return files.toSorted((a, b) => b.usedAt - a.usedAt);
}
