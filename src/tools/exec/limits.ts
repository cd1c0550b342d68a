// Limits that the kernel holds for each process of a run. A shell sets them and becomes the command:
// `ulimit` is everywhere, and what follows is given as arguments, never as text of a script.

import { release } from 'node:os';

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

export function countsPerSpace(kernel: string): boolean {
  if (process.platform !== 'linux') return false;
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  const [wantedMajor, wantedMinor] = COUNTS_PER_SPACE;
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
