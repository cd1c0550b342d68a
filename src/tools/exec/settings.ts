// Settings for programs that the agent runs: confinement, limits, and environment variables that are
// never passed on (case X07). None of it is the model's to choose.

import { z } from 'zod';
import { choice, count, flag, seconds } from '../../kernel/config/settings-fields.ts';

const NAMES = new Set([
  ...['NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_REPL_EXTERNAL_MODULE'],
  ...['PYTHONPATH', 'PYTHONHOME', 'PYTHONSTARTUP', 'PYTHONINSPECT', 'PYTHONBREAKPOINT'],
  ...['PYTHONEXECUTABLE', 'PYTHONUSERBASE', 'PYTHONWARNINGS', 'PYTHONPLATLIBDIR'],
  ...['PERL5LIB', 'PERL5OPT', 'PERLLIB', 'PERL5DB', 'RUBYLIB', 'RUBYOPT', 'GEM_HOME', 'GEM_PATH'],
  ...['JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'LUA_PATH'],
  ...['LUA_CPATH', 'LUA_INIT', 'PHPRC', 'PHP_INI_SCAN_DIR', 'BASH_ENV', 'ENV', 'SHELLOPTS'],
  ...['BASHOPTS', 'PROMPT_COMMAND', 'PS4', 'IFS', 'CDPATH', 'GLOBIGNORE', 'ZDOTDIR', 'FPATH'],
  ...['PATH', 'HOME', 'TMPDIR', 'SHELL', 'EDITOR', 'VISUAL', 'PAGER', 'MANPAGER', 'BROWSER'],
  ...['GCONV_PATH', 'HOSTALIASES', 'LOCPATH', 'NLSPATH', 'RES_OPTIONS', 'TZDIR', 'GETCONF_DIR'],
  ...['OPENSSL_CONF', 'OPENSSL_ENGINES', 'OPENSSL_MODULES', 'SSLKEYLOGFILE', 'COMPILER_PATH'],
  ...['DOTNET_STARTUP_HOOKS', 'CORECLR_PROFILER', 'COR_PROFILER', 'DENO_DIR', 'BUN_OPTIONS'],
  ...['ELECTRON_RUN_AS_NODE', 'R_PROFILE', 'R_PROFILE_USER', 'R_ENVIRON', 'R_ENVIRON_USER'],
  ...['SSH_AUTH_SOCK', 'SSH_ASKPASS', 'GPG_AGENT_INFO', 'DBUS_SESSION_BUS_ADDRESS', 'DISPLAY'],
]);
const PREFIXES = [
  ...['LD_', 'DYLD_', 'GIT_', 'NPM_CONFIG_', 'BASH_FUNC_', 'MALLOC_', 'GLIBC_', 'COR_', 'CORECLR_'],
  ...['NANOBOT_', 'PIP_', 'CARGO_', 'RUSTC', 'GCC_', 'XDG_'],
];

export function isLoaderVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return NAMES.has(upper) || PREFIXES.some((prefix) => upper.startsWith(prefix));
}

// The part of the configuration for programs that the agent runs: how they are confined and how much
// they may use. None of it is the model's to choose.

const SANDBOXES = ['auto', 'bubblewrap', 'seatbelt', 'container', 'off'] as const;
export const MAX_EXEC_SECS = 600;

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/)
  .refine((name) => !isLoaderVariable(name), 'It makes programs load code: it is not passed on');

const limits = z.strictObject({
  timeoutSecs: seconds(1, MAX_EXEC_SECS, 60).describe('Longest run where none is asked for.'),
  memoryMb: count(64, 1_000_000, 2048).describe('Memory of all processes of a run.'),
  maxProcesses: count(1, 10_000, 256).describe('Processes and threads of a run.'),
  cpuSecs: seconds(1, 36_000, 300).describe('Processor time that one process may use.'),
  maxFileMb: count(1, 1_000_000, 500).describe('Largest file that a program may write.'),
  maxDiskMb: count(1, 1_000_000, 2000).describe('What a run may add to the disk.'),
  outputBytes: count(1000, 10_000_000, 100_000).describe(
    'Of its output, and of its errors, what is kept: the beginning and the end.',
  ),
});

const container = z.strictObject({
  engine: choice(['auto', 'podman', 'docker'], 'auto').describe(
    'What runs containers. auto: podman, else docker.',
  ),
  image: z
    .string()
    .regex(/^$|^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/, 'Write the name of an image')
    .default('')
    .describe('That programs run in; it is never fetched. Empty: no containers.'),
  cpus: z.number().min(0.1).max(1000).default(1).describe('Processors that a container may use.'),
});

export const execSchema = z.strictObject({
  enabled: flag(true).describe('exec and execute_code: the agent may run programs.'),
  sandbox: choice(SANDBOXES, 'auto').describe(
    'What programs are confined by. auto: bubblewrap on Linux, sandbox-exec on macOS, else a ' +
      'container where an image is named; without any there is neither tool. off: they see all ' +
      'that nanobot sees, its secrets included.',
  ),
  container: container.prefault({}),
  network: choice(['off', 'on'], 'off').describe('Whether programs reach the network.'),
  readOnly: z
    .array(z.string().regex(/^\/./, 'Write the whole path'))
    .max(50)
    .default([])
    .describe('Folders that programs may read besides the workspace and those of the system.'),
  env: z
    .array(variableName)
    .max(50)
    .default([])
    .describe('Names of environment variables that programs get. Secrets of nanobot are left out.'),
  limits: limits.prefault({}),
});

export type ExecConfig = z.infer<typeof execSchema>;
