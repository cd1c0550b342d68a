// Folders of YAML files in which people declare things, each named like what it declares. Read on
// each use, so that a change takes effect at once. Links are not followed; an unusable file is
// reported with the reason.

import type { ReadFile } from '../json/json.ts';
import { parseYaml, YamlError } from '../yaml.ts';
import type { GuardedFiles } from './guarded-files.ts';
import { GuardedFileError } from './guarded-path.ts';

const MAX_FILES = 200;
export const MAX_DECLARED_BYTES = 65_536;
/** If a file exists with both extensions, the last counts. */
const ENDINGS = ['.yml', '.yaml'];

/** Paths below the root by name, in the order of the names; empty if the folder cannot be read. */
export async function declaredPaths(
  files: GuardedFiles,
  root: string,
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  try {
    const { entries } = await files.list(root, folder, { maxEntries: MAX_FILES });
    const found = ENDINGS.flatMap((ending) =>
      entries
        .filter(({ name, kind }) => kind === 'file' && name.endsWith(ending))
        .map(({ name }) => [name.slice(0, -ending.length), `${folder}/${name}`] as const),
    );
    return new Map([...new Map(found)].sort(([one], [other]) => (one < other ? -1 : 1)));
  } catch (error) {
    if (error instanceof GuardedFileError) return new Map();
    throw error;
  }
}

type DeclaredAt = { readonly root: string; readonly path: string; readonly name: string };
type Check<T> = (values: unknown, name: string) => ReadFile<T>;

/** `check` parses the values of the file. */
export async function readDeclared<T>(
  files: GuardedFiles,
  { root, path, name }: DeclaredAt,
  check: Check<T>,
): Promise<ReadFile<T>> {
  try {
    const bytes = await files.read(root, path, { maxBytes: MAX_DECLARED_BYTES });
    return check(await parseYaml(bytes.toString('utf8')), name);
  } catch (error) {
    const isKnown = error instanceof YamlError || error instanceof GuardedFileError;
    if (isKnown) return { kind: 'broken', name, problem: error.message };
    throw error;
  }
}

/** The same; every problem names the path. */
export async function readWithPath<T>(
  files: GuardedFiles,
  at: DeclaredAt,
  check: Check<T>,
): Promise<ReadFile<T>> {
  const found = await readDeclared(files, at, check);
  if (found.kind === 'valid') return found;
  const named = (problem: string) => `${at.path}: ${problem}`;
  const more = found.more === undefined ? {} : { more: found.more.map(named) };
  return { ...found, problem: named(found.problem), ...more };
}
