// Where results lie: one JSON file for each run, written whole and replaced whole.

import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomic } from '../../lib/files/files.ts';
import { type EvalResult, evalResult } from './rules/result.ts';

export type StoredResult = { readonly name: string; readonly result: EvalResult };

export type ReadResults = {
  /** Oldest first. */
  readonly results: readonly StoredResult[];
  /** Names of files that are no results of this version. */
  readonly unread: readonly string[];
};

const FOLDER_MODE = 0o700;
const RESULT_FILE = /^[a-z]+_[\dTZ-]+\.json$/;

export const resultName = (result: Pick<EvalResult, 'benchmark' | 'startedAt'>) =>
  `${result.benchmark}_${result.startedAt.replace(/[:.]/g, '-')}.json`;

/** The path of the file. */
export async function keepResult(folder: string, result: EvalResult): Promise<string> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  const path = join(folder, resultName(result));
  await writeAtomic(path, `${JSON.stringify(result, undefined, 2)}\n`);
  return path;
}

export async function readResults(folder: string): Promise<ReadResults> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => RESULT_FILE.test(name));
  const read = await Promise.all(
    files.map(async (name) => ({ name, result: await readResult(join(folder, name)) })),
  );
  const results = read.flatMap(({ name, result }) =>
    result === undefined ? [] : [{ name, result }],
  );
  return {
    results: results.sort((one, other) =>
      one.result.startedAt.localeCompare(other.result.startedAt),
    ),
    unread: read.filter(({ result }) => result === undefined).map(({ name }) => name),
  };
}

async function readResult(path: string): Promise<EvalResult | undefined> {
  try {
    const parsed = evalResult.safeParse(JSON.parse(await readFile(path, 'utf8')));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
