// What of the workspace a program must not see, and what it may not change: secrets, notes of others,
// and what later turns are told to follow. The workspace is searched before each run, since everything
// else in it is the program's to change.

import type { Dirent } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { SKILLS_FOLDER } from '../../agent/rules/prompt.ts';
import { writeAccessOf } from '../../agent/rules/rule-files.ts';
import { PROFILES_FOLDER } from '../../features/subagents/rules/profile.ts';
import {
  CAPABILITIES_FOLDER,
  WORKFLOWS_FOLDER,
} from '../../features/workflows/rules/definition.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import {
  GROUPS_FOLDER,
  leadsToOthers,
  PEOPLE_FOLDER,
  type TurnPerson,
} from '../../kernel/message/notes.ts';
import { isProtected } from '../../lib/files/guarded-path.ts';
import type { HiddenPath, Shields } from './sandbox.ts';

export type WorkspaceShields = Shields & {
  /** Names at the top that later turns follow, before the run. */
  readonly rules: ReadonlySet<string>;
};

/** Entries that are looked at before a run is refused. */
const MAX_ENTRIES = 100_000;
const MAX_SHIELDS = 2000;
const NOTES_FOLDERS = [
  ...['memory', SKILLS_FOLDER, PROFILES_FOLDER, WORKFLOWS_FOLDER, CAPABILITIES_FOLDER],
  ...[PEOPLE_FOLDER, GROUPS_FOLDER],
];
/** Installed packages: theirs are the certificates and keys of tests, not of people. */
const PACKAGES = new Set(['node_modules', 'site-packages', 'dist-packages']);
const GIT_RUNS = ['hooks', 'config', 'modules'];

const isRule = (name: string) => writeAccessOf(name, false) === 'rules';

/**
 * To be asked while no other program works in the workspace, which could exchange what was looked at.
 * @throws ToolError where there is too much to be sure.
 */
export async function shieldsOf(workspace: string, person: TurnPerson): Promise<WorkspaceShields> {
  const { notes } = person;
  // What is not there cannot be shielded, and a program could make it.
  const needed = notes === '' ? NOTES_FOLDERS : [...NOTES_FOLDERS, notes.replace(/\/+$/, '')];
  for (const name of needed) await mkdir(join(workspace, name), { recursive: true, mode: 0o700 });
  const entries = await readdir(workspace, { withFileTypes: true });
  const rules = entries.filter(({ name }) => isRule(name));
  const rest = await searched(workspace, person);
  const kept = [...NOTES_FOLDERS, ...rules.filter(isThere).map(({ name }) => name)];
  const own = kept.filter((name) => !leadsToOthers(name, notes));
  return {
    ...rest,
    readOnly: [...new Set(own.map((name) => join(workspace, name))), ...rest.readOnly],
    shown: notes === '' ? [] : [join(workspace, notes.replace(/\/+$/, ''))],
    rules: new Set(rules.map(({ name }) => name)),
  };
}

/** What a link leads to is not there inside, or is looked at where it stands. */
const isThere = (entry: Dirent) => entry.isFile() || entry.isDirectory();

type Found = Pick<Shields, 'hidden' | 'readOnly' | 'pinned'>;

async function searched(workspace: string, { notes }: TurnPerson): Promise<Found> {
  const [hidden, readOnly, pinned]: [HiddenPath[], string[], string[]] = [[], [], []];
  const open = [workspace];
  let seen = 0;
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    seen += entries.length;
    if (seen > MAX_ENTRIES || hidden.length + readOnly.length > MAX_SHIELDS) throw tooMuch();
    for (const entry of entries.filter(isThere)) {
      const path = join(folder, entry.name);
      const names = relative(workspace, path).split('/');
      const kind = entry.isDirectory() ? 'folder' : 'file';
      if (isProtected(names) || leadsToOthers(names.join('/'), notes)) hidden.push({ path, kind });
      else if (kind === 'folder' && entry.name === '.git') {
        pinned.push(path);
        readOnly.push(...(await runByGit(path)));
      } else if (kind === 'folder' && !PACKAGES.has(entry.name)) open.push(path);
    }
  }
  return { hidden, readOnly, pinned };
}

async function runByGit(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = entries.filter((entry) => GIT_RUNS.includes(entry.name) && isThere(entry));
  return found.map(({ name }) => join(folder, name));
}

const tooMuch = () =>
  new ToolError(
    'blocked',
    'the workspace holds too many files to find those that programs must not see; tidy it up first',
  );

/** What a program made that later turns would follow gets another name; the new names. */
export async function setAside(
  workspace: string,
  before: WorkspaceShields,
): Promise<readonly string[]> {
  const names = await readdir(workspace).catch(() => []);
  const made = names.filter((name) => isRule(name) && !before.rules.has(name));
  const moved: string[] = [];
  for (const name of made) {
    const to = `${name}.made-by-a-program`;
    await rename(join(workspace, name), join(workspace, to)).catch(() => undefined);
    moved.push(to);
  }
  return moved;
}
