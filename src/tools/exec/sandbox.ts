// CONTRACT of a sandbox, the limits that the kernel enforces for each process (set by `ulimit`,
// passed as arguments, never as script text), and the unconfined variant that only an owner can
// choose.

import type { Dirent } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { SKILLS_FOLDER } from '../../agent/rules/prompt.ts';
import { writeAccessOf } from '../../agent/rules/taint.ts';
import { PROFILES_FOLDER } from '../../features/subagents/settings.ts';
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
  /** Disk space that a run may add. */
  readonly diskBytes: number;
  /** Kept of each, output and errors. */
  readonly outputBytes: number;
};

const MAX_OPEN_FILES = 1024;
/** Programs such as node reserve more than they use; the total use is watched. */
const RESERVED_BYTES = 1024 ** 3;
const BLOCK_BYTES = 512;
/**
 * From this version the kernel counts processes per user namespace (Linux 5.14), before per user.
 */
const COUNTS_PER_SPACE = [5, 14] as const;

const SET_LIMITS = [
  'ulimit -c 0',
  'ulimit -t "$1"',
  'ulimit -f "$2"',
  'ulimit -n "$3"',
  'ulimit -d "$4" 2>/dev/null',
  // bash, busybox and zsh call it -u; dash -p, which bash would take for the size of pipes.
  'if [ "$5" != 0 ]; then',
  '  if (ulimit -u "$5") 2>/dev/null; then ulimit -u "$5"; else ulimit -p "$5" 2>/dev/null; fi',
  'fi',
  'umask 077',
  'shift 5',
  'exec "$@"',
].join('\n');

/** Arguments of a shell that becomes the command. */
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

/** Whether the path is the folder or inside it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

// CONTRACT of a sandbox: turns a command into one that runs the same confined. The caller decides
// what it may see; run-confined.ts starts, watches and ends it.

export type Argv = readonly [string, ...string[]];

/** What a command may access. All paths are absolute and real. */
export type Confinement = {
  /** Mounted at the same path; undefined: no files of the workspace. */
  readonly workspace: string | undefined;
  readonly isWritable: boolean;
  /** Its working directory; also its HOME. */
  readonly cwd: string;
  readonly shields: Shields;
  /** Besides the system's own programs. */
  readonly extraReadOnly: readonly string[];
  /** Never visible, wherever they are: the state of the gateway. */
  readonly forbidden: readonly string[];
  /** Holds the script of this run; readable. */
  readonly scriptFolder: string | undefined;
  /** Seen in place of the files at these paths: copies of what an owner approved. */
  readonly replaced: readonly { readonly path: string; readonly by: string }[];
  readonly hasNetwork: boolean;
  /** What it may write outside of the workspace, bytes. */
  readonly scratchBytes: number;
};

/** Parts of the workspace that are protected from a command. */
type Shields = {
  /** Readable, not writable. */
  readonly readOnly: readonly string[];
  /** Not visible. */
  readonly hidden: readonly HiddenPath[];
  /** Exceptions inside hidden paths: readable. */
  readonly shown: readonly string[];
  /** Folders whose content it may change, but which it cannot replace. */
  readonly pinned: readonly string[];
};

export const NO_SHIELDS: Shields = { readOnly: [], hidden: [], shown: [], pinned: [] };

type HiddenPath = { readonly path: string; readonly kind: 'file' | 'folder' };

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
  /** Written to file descriptor 3, so that no process list shows it. */
  readonly arguments: string | undefined;
  /** Set if the command does not run below the started program. */
  readonly remote?: RemoteRun;
};

export type RemoteRun = {
  /** Ends it now, without waiting; also a run that is only about to start. */
  end(): void;
  /** Resolves when nothing of it is left, or that cannot be determined. */
  gone(): Promise<void>;
};

export interface Sandbox {
  readonly kind: 'bubblewrap' | 'seatbelt' | 'container' | 'off';
  /** A description for owners. */
  readonly about: string;
  /** Set if programs are not those of this machine: identifies the source permanently. */
  readonly image?: string;
  /** Every process of a run ends with its first one, and with the gateway. */
  readonly endsWithParent: boolean;
  /** Where commands find the program that runs the gateway. */
  readonly node: string;
  /** Where a file of the script folder is seen. */
  scriptPath(scriptFolder: string, name: string): string;
  /** Where a command without a workspace may write. */
  readonly scratch: string;
  /** @throws ToolError if it cannot be confined as required */
  launch(run: ToLaunch): Launch;
}

// No sandbox: the command sees what the gateway's user sees. Only if an owner switched it off.

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

// The parts of the workspace that a program must not see or change: secrets, notes of other people,
// and what later turns follow. The workspace is searched before each run, because programs may
// change everything else in it.

export type WorkspaceShields = Shields & {
  /** Names at the top level that later turns follow, before the run. */
  readonly rules: ReadonlySet<string>;
};

/** Entries examined before a run is refused. */
const MAX_ENTRIES = 100_000;
const MAX_SHIELDS = 2000;
const NOTES_FOLDERS = [
  ...['memory', SKILLS_FOLDER, PROFILES_FOLDER, WORKFLOWS_FOLDER, CAPABILITIES_FOLDER],
  ...[PEOPLE_FOLDER, GROUPS_FOLDER],
];
/** Installed packages: their certificates and keys are test data, not people's. */
const PACKAGES = new Set(['node_modules', 'site-packages', 'dist-packages']);
const GIT_RUNS = ['hooks', 'config', 'modules'];

const isRule = (name: string) => writeAccessOf(name, false) === 'rules';

/**
 * Call while no other program works in the workspace, which could exchange what was examined.
 * @throws ToolError if there is too much to examine.
 */
export async function shieldsOf(workspace: string, person: TurnPerson): Promise<WorkspaceShields> {
  const { notes } = person;
  // A path that does not exist cannot be shielded, and a program could create it.
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

/** The target of a link is not mounted, or is examined at its own place. */
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

/** Renames what a program created and later turns would follow; returns the new names. */
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
