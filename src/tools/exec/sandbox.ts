// CONTRACT of a sandbox, the limits the kernel enforces for each process (set by `ulimit`, passed as
// arguments, never as script text), and the unconfined variant that only an owner can choose.

import type { Dirent } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { SKILLS_FOLDER } from '../../agent/rules/prompt.ts';
import { writeAccessOf } from '../../agent/rules/taint.ts';
import { PROFILES_FOLDER } from '../../features/subagents/rules/subagent.ts';
import { CAPABILITIES_FOLDER, WORKFLOWS_FOLDER } from '../../features/workflows/settings.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import {
  GROUPS_FOLDER,
  PEOPLE_FOLDER,
  reachesOthers,
  type TurnPerson,
} from '../../kernel/message/untrusted.ts';
import { isProtected } from '../../lib/files/guarded-path.ts';

export type ExecLimits = {
  readonly timeoutMs: number;
  /** Of all processes of a run together. */
  readonly memoryBytes: number;
  readonly maxProcesses: number;
  /** Of one process. */
  readonly cpuSeconds: number;
  readonly fileBytes: number;
  /** What a run may add to the disk. */
  readonly diskBytes: number;
  /** Of each, output and errors, that is kept. */
  readonly outputBytes: number;
};

const MAX_OPEN_FILES = 1024;
/** Programs such as node reserve more than they use; what all use together is watched. */
const RESERVED_BYTES = 1024 ** 3;
const BLOCK_BYTES = 512;
/** From here on the kernel counts processes per user name space (Linux 5.14), else per user. */
const COUNTS_PER_SPACE = [5, 14] as const;

const SET_LIMITS = [
  'ulimit -c 0',
  'ulimit -t "$1"',
  'ulimit -f "$2"',
  'ulimit -n "$3"',
  'ulimit -d "$4" 2>/dev/null',
  // bash, busybox and zsh call it -u, dash -p, which bash would take for the size of pipes.
  'if [ "$5" != 0 ]; then',
  '  if (ulimit -u "$5") 2>/dev/null; then ulimit -u "$5"; else ulimit -p "$5" 2>/dev/null; fi',
  'fi',
  'umask 077',
  'shift 5',
  'exec "$@"',
].join('\n');

/** Of a shell that becomes the command. */
type Limited = readonly [string, ...string[]];

export function withLimits(command: Limited, limits: ExecLimits, isConfined: boolean): Limited {
  const processes = isConfined && countsPerSpace(release()) ? limits.maxProcesses : 0;
  const values = [
    Math.ceil(limits.cpuSeconds),
    Math.ceil(limits.fileBytes / BLOCK_BYTES),
    MAX_OPEN_FILES,
    Math.ceil((limits.memoryBytes + RESERVED_BYTES) / 1024),
    processes,
  ];
  return ['/bin/sh', '-c', SET_LIMITS, 'nanobot', ...values.map(String), ...command];
}

function countsPerSpace(kernel: string): boolean {
  if (process.platform !== 'linux') return false;
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  const [wantedMajor, wantedMinor] = COUNTS_PER_SPACE;
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

// Facts about absolute paths without links.

/** Whether the path is the folder or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

// CONTRACT of a sandbox: turns a command into one that runs the same confined. What it may see is
// decided before; starting, watching and ending it is left to run-confined.ts.

export type Argv = readonly [string, ...string[]];

/** What a command may reach. All paths are absolute and real. */
export type Confinement = {
  /** Under the same path inside; undefined: no files of ours at all. */
  readonly workspace: string | undefined;
  readonly isWritable: boolean;
  /** Where it begins; also its HOME. */
  readonly cwd: string;
  readonly shields: Shields;
  /** Besides the system's own programs. */
  readonly extraReadOnly: readonly string[];
  /** Never seen, wherever they lie: the state of the gateway. */
  readonly forbidden: readonly string[];
  /** Holds the script of this run; readable. */
  readonly scriptFolder: string | undefined;
  /** Seen in place of what stands at the path: copies of what an owner allowed. */
  readonly replaced: readonly { readonly path: string; readonly by: string }[];
  readonly hasNetwork: boolean;
  /** Of what it writes outside of the workspace, bytes. */
  readonly scratchBytes: number;
};

/** Parts of the workspace that are kept from a command. */
export type Shields = {
  /** It may read them and not change them. */
  readonly readOnly: readonly string[];
  /** It must not see them. */
  readonly hidden: readonly HiddenPath[];
  /** In what is hidden: it may read them all the same. */
  readonly shown: readonly string[];
  /** Folders that it may change and not put others in place of. */
  readonly pinned: readonly string[];
};

export const NO_SHIELDS: Shields = { readOnly: [], hidden: [], shown: [], pinned: [] };

export type HiddenPath = { readonly path: string; readonly kind: 'file' | 'folder' };

export type ToLaunch = {
  readonly command: Argv;
  readonly confinement: Confinement;
  readonly limits: ExecLimits;
  /** Of the command. */
  readonly env: Environment;
};

export type Launch = {
  readonly argv: Argv;
  /** Of the program that is started. */
  readonly cwd: string;
  readonly env: Environment;
  /** Written to file descriptor 3, so that no list of processes shows it. */
  readonly arguments: string | undefined;
  /** Where the command runs elsewhere than below the program that is started. */
  readonly remote?: RemoteRun;
};

export type RemoteRun = {
  /** Ends it now, without a wait; also what is only about to begin. */
  end(): void;
  /** When nothing of it is left, or nobody can say. */
  gone(): Promise<void>;
};

export interface Sandbox {
  readonly kind: 'bubblewrap' | 'seatbelt' | 'container' | 'off';
  /** In words, for owners. */
  readonly about: string;
  /** Set where programs are not those of this machine: names for good what they come from. */
  readonly image?: string;
  /** Every process of a run ends with its first one, and with ours. */
  readonly endsWithParent: boolean;
  /** Where commands find the program that runs us. */
  readonly node: string;
  /** Where a file of the script folder is seen. */
  scriptPath(scriptFolder: string, name: string): string;
  /** Where a command may write that has no workspace. */
  readonly scratch: string;
  /** @throws ToolError where it cannot be confined so */
  launch(run: ToLaunch): Launch;
}

// No sandbox: the command sees what the gateway's user sees. Only where an owner switched it off.

export function createUnconfined(nodePath: string): Sandbox {
  return {
    kind: 'off',
    about: 'nothing',
    endsWithParent: false,
    node: nodePath,
    scratch: tmpdir(),
    scriptPath: (folder, name) => join(folder, name),
    launch: ({ command, confinement, limits, env }) => ({
      argv: withLimits(command, limits, false),
      cwd: confinement.cwd,
      env,
      arguments: undefined,
    }),
  };
}

// What of the workspace a program must not see, and what it may not change: secrets, notes of others,
// and what later turns are told to follow. The workspace is searched before each run, since everything
// else in it is the program's to change.

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
  const own = kept.filter((name) => !reachesOthers(name, notes));
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
      if (isProtected(names) || reachesOthers(names.join('/'), notes)) hidden.push({ path, kind });
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
