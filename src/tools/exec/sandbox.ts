// CONTRACT of a sandbox, the limits the kernel enforces for each process (set by `ulimit`, passed as
// arguments, never as script text), and the unconfined variant that only an owner can choose.

import { release, tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';

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
