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

/** `check` parses the values of the file; every problem names the path. */
export async function readDeclared<T>(
  files: GuardedFiles,
  { root, path, name }: { readonly root: string; readonly path: string; readonly name: string },
  check: (values: unknown, name: string) => ReadFile<T>,
): Promise<ReadFile<T>> {
  try {
    const bytes = await files.read(root, path, { maxBytes: MAX_DECLARED_BYTES });
    const found = check(await parseYaml(bytes.toString('utf8')), name);
    if (found.kind === 'valid') return found;
    const more = found.more?.map((each) => `${path}: ${each}`) ?? [];
    return { ...found, problem: `${path}: ${found.problem}`, more };
  } catch (error) {
    const isKnown = error instanceof YamlError || error instanceof GuardedFileError;
    if (isKnown) return { kind: 'broken', name, problem: `${path}: ${error.message}` };
    throw error;
  }
}
