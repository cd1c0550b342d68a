// Which file a program's name means: looked up in a fixed list of folders, never in one the model
// names.

import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ToolError } from '../../kernel/message/errors.ts';
import { isWithin } from './paths.ts';
import type { Sandbox } from './sandbox.ts';

export const PROGRAM_FOLDERS: readonly string[] = [
  ...['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'],
  ...(process.platform === 'darwin' ? ['/opt/homebrew/bin'] : []),
];

export type Program = {
  /** How it is called in the sandbox. */
  readonly called: string;
  /** The file outside of it; undefined where it is one of the sandbox's own. */
  readonly file: string | undefined;
};

export type ProgramPlaces = {
  readonly sandbox: Sandbox;
  readonly nodePath: string;
  readonly cwd: string;
  readonly workspace: string;
  /** Further folders that a command may see. */
  readonly visible: readonly string[];
};

/** @throws ToolError not_found, blocked */
export async function findProgram(name: string, places: ProgramPlaces): Promise<Program> {
  const { sandbox, nodePath } = places;
  if (sandbox.image !== undefined) return inImage(name, places);
  if (name === 'node') return { called: sandbox.node, file: nodePath };
  if (!name.includes('/')) return inFolders(name);
  const called = resolve(places.cwd, name);
  const isSeen = [places.workspace, ...PROGRAM_FOLDERS, ...places.visible, '/usr'].some((folder) =>
    isWithin(called, folder),
  );
  if (!isSeen) throw notFound(`${name} lies where programs cannot be run from`);
  const file = await executable(called);
  if (file === undefined) throw notFound(`there is no program ${name}`);
  return { called, file };
}

/** What is not in the workspace is looked for by whoever runs the image. */
async function inImage(name: string, { cwd, workspace }: ProgramPlaces): Promise<Program> {
  if (!name.includes('/')) return { called: name, file: undefined };
  const called = resolve(cwd, name);
  if (!isWithin(called, workspace)) return { called, file: undefined };
  const file = await executable(called);
  if (file === undefined) throw notFound(`there is no program ${name}`);
  return { called, file };
}

async function inFolders(name: string): Promise<Program> {
  for (const folder of PROGRAM_FOLDERS) {
    const called = join(folder, name);
    const file = await executable(called);
    if (file !== undefined) return { called, file };
  }
  throw notFound(`there is no program ${name} on this machine`);
}

const notFound = (message: string) => new ToolError('not_found', message);

async function executable(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const file = await realpath(path);
    return (await stat(file)).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}
