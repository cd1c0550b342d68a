// Files of one folder for callers that are not trusted with paths (case X08): links are never
// followed, only regular files are opened, sizes are capped, writing replaces in one step. Changes
// of one file run one after the other.

import { realpath, stat } from 'node:fs/promises';
import { createLanes } from '../async/lanes.ts';
import {
  type GuardedListing,
  listFolder,
  type ReadLimits,
  readEntry,
  replaceEntry,
  undefinedIfMissing,
} from './guarded-entries.ts';
import { explain, type GuardedFolder, hasHandlePaths, openFolder } from './guarded-folder.ts';
import { foldName, GuardedFileError, guardedNames } from './guarded-path.ts';

/** `root` is the folder, `path` what the caller wants in it. @throws GuardedFileError */
export interface GuardedFiles {
  read(root: string, path: string, limits: ReadLimits): Promise<Buffer>;
  /** Creates missing folders. Tells whether the file is new. */
  write(
    root: string,
    path: string,
    content: string | AsyncIterable<Uint8Array>,
  ): Promise<'created' | 'replaced'>;
  /** Reads, changes and writes with no other change in between; undefined = there is no file. */
  update(
    root: string,
    path: string,
    change: (content: Buffer | undefined) => string | undefined,
    limits: { readonly maxBytes: number },
  ): Promise<void>;
  list(
    root: string,
    path: string,
    limits: { readonly maxEntries: number },
  ): Promise<GuardedListing>;
}

/** `forbidden`: folders that stay closed even where the guarded folder contains them. */
export function createGuardedFiles(
  options: { readonly forbidden?: readonly string[] } = {},
): GuardedFiles {
  return new FolderGuard(options.forbidden ?? []);
}

type Place = { readonly root: string; readonly names: readonly string[] };

class FolderGuard implements GuardedFiles {
  readonly #forbidden: readonly string[];
  readonly #byHandle = hasHandlePaths();
  readonly #lanes = createLanes();

  constructor(forbidden: readonly string[]) {
    this.#forbidden = forbidden;
  }

  async read(root: string, path: string, limits: ReadLimits): Promise<Buffer> {
    return this.#read(await locate(root, path), limits);
  }

  async write(
    root: string,
    path: string,
    content: string | AsyncIterable<Uint8Array>,
  ): Promise<'created' | 'replaced'> {
    const place = await locate(root, path);
    return this.#lanes.run(laneOf(place), () => this.#write(place, content));
  }

  async update(
    root: string,
    path: string,
    change: (content: Buffer | undefined) => string | undefined,
    limits: { readonly maxBytes: number },
  ): Promise<void> {
    const place = await locate(root, path);
    await this.#lanes.run(laneOf(place), async () => {
      const before = await this.#read(place, limits).catch(undefinedIfMissing);
      const content = change(before);
      if (content !== undefined) await this.#write(place, content);
    });
  }

  async list(
    root: string,
    path: string,
    limits: { readonly maxEntries: number },
  ): Promise<GuardedListing> {
    const { root: realRoot, names } = await locate(root, path);
    return this.#inFolder(realRoot, names, false, (folder) =>
      listFolder(folder, names, limits.maxEntries),
    );
  }

  /** Keeps the folder open while the task works in it. */
  async #inFolder<T>(
    root: string,
    names: readonly string[],
    create: boolean,
    task: (folder: GuardedFolder) => Promise<T>,
  ): Promise<T> {
    const found = this.#forbidden.map((path) => stat(path).catch(() => undefined));
    const forbidden = (await Promise.all(found)).filter((info) => info !== undefined);
    const folder = await openFolder(root, names, { create, byHandle: this.#byHandle, forbidden });
    try {
      return await task(folder);
    } finally {
      await folder.handle.close();
    }
  }

  #read(place: Place, limits: ReadLimits): Promise<Buffer> {
    const { name, folders } = splitLast(place);
    return this.#inFolder(place.root, folders, false, (folder) => readEntry(folder, name, limits));
  }

  #write(
    place: Place,
    content: string | AsyncIterable<Uint8Array>,
  ): Promise<'created' | 'replaced'> {
    const { name, folders } = splitLast(place);
    return this.#inFolder(place.root, folders, true, (folder) =>
      replaceEntry(folder, name, content),
    );
  }
}

async function locate(root: string, path: string): Promise<Place> {
  const real = await realpath(root).catch((cause: unknown) => explain(root, cause));
  return { root: real, names: guardedNames(path, [root, real]) };
}

const laneOf = (place: Place) => [place.root, ...place.names.map(foldName)].join('/');

function splitLast(place: Place) {
  const name = place.names.at(-1);
  if (name === undefined) throw new GuardedFileError('not_a_file', 'this is the workspace itself');
  return { name, folders: place.names.slice(0, -1) };
}
