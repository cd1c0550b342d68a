// Whose notes a turn works with: the owner's lie at the top of the workspace, everybody else's and
// every group's in a folder of their own, and none of them is to be reached from another's turn.

/** Whose a turn is: where its notes are and how it is answered. */
export type TurnPerson = {
  /** Folder below the workspace, ending in `/`; empty: the owner's, the top. */
  readonly notes: string;
  /** In English, e.g. `German`. */
  readonly language?: string;
  /** IANA name. */
  readonly timeZone?: string;
};

export const OWNER_TURN: TurnPerson = { notes: '' };

export const PEOPLE_FOLDER = 'people';
export const GROUPS_FOLDER = 'groups';

const OTHERS_FOLDERS = new Set([PEOPLE_FOLDER, GROUPS_FOLDER]);

/** What tells about the owner or about somebody, at the top of the workspace. */
const PRIVATE_NAMES = new Set(['memory', PEOPLE_FOLDER, GROUPS_FOLDER, 'user.md']);
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** Files of the workspace that are about the owner. */
export const OWNER_FILES: readonly string[] = ['USER.md'];

/** Whether a path relative to the workspace leads to the notes of others than `notes`. */
export function leadsToOthers(path: string, notes: string): boolean {
  const names = plainNames(path);
  if (notes === '') {
    // An owner's turn has all of the workspace but what is somebody else's. Where it begins in an
    // absolute path is not known here: one that names such a folder anywhere is refused.
    const isPlain = names !== undefined && !path.startsWith('/');
    const heads = isPlain ? names.slice(0, 1) : path.split('/').map(comparable);
    return heads.some((name) => OTHERS_FOLDERS.has(name));
  }
  if (path.startsWith('/') || path.includes('\\') || names === undefined) return true;
  const own = notes.split('/').filter((name) => name !== '');
  const isOwn = own.every((name, index) => names[index] === name.toLowerCase());
  return !isOwn && PRIVATE_NAMES.has(names[0] ?? '');
}

/** The names the path leads through, as a forgiving disk compares them; undefined: out of the folder. */
function plainNames(path: string): readonly string[] | undefined {
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(comparable(name));
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

const comparable = (name: string) =>
  name
    .normalize('NFKC')
    .replace(IGNORABLE, '')
    .toLowerCase()
    .replace(/[. ]+$/, '');
