// The suite of the search by meaning: the time of one search over so many passages, how long it holds
// the event loop at a stretch, and the memory that it takes.

import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fused, openVectors } from '../src/features/semantic-search/vectors.ts';
import { createFileIndex } from '../src/kernel/bus/store/file-index.ts';
import { silentLogger } from '../src/lib/logger.ts';
import { percentile } from './load.ts';
import { nowMs } from './peers.ts';
import { figure, header, row } from './table.ts';

const PASSAGES = [10_000, 50_000, 200_000];
const DIMENSIONS = [384, 1536];
const QUERIES = 20;
const PARTS_OF_FILE = 1000;
const WORDS = 5000;
const WORDS_OF_PART = 60;
const SCOPE = 'files:';

export async function search(): Promise<void> {
  header('passages', 'numbers', 'words p50 ms', 'meaning p50 ms', 'p95', 'loop held ms', 'file MB');
  for (const dimensions of DIMENSIONS) {
    for (const passages of PASSAGES) await measure(passages, dimensions);
  }
}

async function measure(passages: number, dimensions: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const path = join(folder, 'index.db');
  const random = createRandom(7);
  const index = createFileIndex({ path, log: silentLogger });
  try {
    const vectors = openVectors(index);
    await vectors.use('bench');
    for (let at = 0; at < passages; at += PARTS_OF_FILE) {
      const parts = Array.from({ length: PARTS_OF_FILE }, (_, place) => ({
        ...({ place, role: 'note', isForeign: true, at } as const),
        text: textOf(random),
      }));
      const source = { name: `files/${at}.md`, scope: SCOPE, label: `${at}.md` };
      const step = { from: undefined, to: { stamp: '', position: 0 }, replaces: false };
      await index.put([{ source, step, parts }]);
      for (const part of await vectors.next(Number.MAX_SAFE_INTEGER, PARTS_OF_FILE)) {
        await vectors.put(part, [{ offset: 0, vector: vectorOf(random, dimensions) }]);
      }
    }
    const options = { scopes: [SCOPE], limit: 50 };
    const [words, meaning]: [number[], number[]] = [[], []];
    const held = monitorEventLoopDelay({ resolution: 1 });
    held.enable();
    for (let query = 0; query < QUERIES; query += 1) {
      const text = textOf(random).split(' ').slice(0, 4).join(' ');
      const vector = vectorOf(random, dimensions);
      const begun = nowMs();
      const byWords = await index.find(text, { ...options, now: 0 });
      words.push(nowMs() - begun);
      const near = await vectors.nearest(vector, options);
      await vectors.parts(fused([byWords.map(({ id }) => id), near.map(({ part }) => part)]));
      meaning.push(nowMs() - begun - (words.at(-1) ?? 0));
    }
    held.disable();
    const megabytes = (bytes: number) => figure(bytes / 1e6);
    row(
      String(passages),
      String(dimensions),
      figure(percentile(words, 0.5)),
      figure(percentile(meaning, 0.5)),
      figure(percentile(meaning, 0.95)),
      figure(held.percentile(99) / 1e6),
      megabytes((await stat(path)).size),
    );
  } finally {
    await index[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Numerical Recipes: the same texts and vectors in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const textOf = (random: () => number) =>
  Array.from({ length: WORDS_OF_PART }, () => `w${Math.floor(random() ** 3 * WORDS)}`).join(' ');

const vectorOf = (random: () => number, dimensions: number) =>
  Float32Array.from({ length: dimensions }, () => random() - 0.5);
