// Settings for programs that the agent runs: confinement, limits, and environment variables that
// are never passed on (case X07). The model cannot choose any of it.

import { z } from 'zod';
import { choice, count, flag, seconds, secret } from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

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

// The part of the configuration for programs that the agent runs: how they are confined and how
// much they may use. The model cannot choose any of it.

const SANDBOXES = ['auto', 'bubblewrap', 'seatbelt', 'container', 'off'] as const;
export const MAX_EXEC_SECS = 600;

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'Write the name of a variable, e.g. LANG')
  .refine(
    (name) => !isLoaderVariable(name),
    t`This variable makes programs load code and cannot be passed on`,
  );

const limits = z.strictObject({
  timeoutSecs: seconds(1, MAX_EXEC_SECS, 60).describe('Longest run if the model sets no limit.'),
  memoryMb: count(64, 1_000_000, 2048).describe('Most memory of all processes of a run.'),
  maxProcesses: count(1, 10_000, 256).describe('Most processes and threads of a run.'),
  cpuSecs: seconds(1, 36_000, 300).describe('Most processor time of one process.'),
  maxFileMb: count(1, 1_000_000, 500).describe('Largest file that a program may write.'),
  maxDiskMb: count(1, 1_000_000, 2000).describe('Most data that a run may add to the disk.'),
  outputBytes: count(1000, 10_000_000, 100_000).describe(
    'Characters kept of its output and of its errors: the beginning and the end.',
  ),
});

const container = z.strictObject({
  engine: choice(['auto', 'podman', 'docker'], 'auto').describe(
    'Program for containers. auto: podman, else docker.',
  ),
  image: z
    .string()
    .regex(/^$|^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/, 'Use the name of an image')
    .default('')
    .describe('Image in which programs run; it is never downloaded. Empty: no containers.'),
  cpus: z.number().min(0.1).max(1000).default(1).describe('Most processors of a container.'),
});

export const execSchema = z.strictObject({
  enabled: flag(true).describe('The tools exec and execute_code: the agent may run programs.'),
  sandbox: choice(SANDBOXES, 'auto').describe(
    'Sandbox for programs. auto: bubblewrap on Linux, sandbox-exec on macOS, else a container if an ' +
      'image is set; without any sandbox both tools are off. off: no sandbox, programs can read ' +
      'everything nanobot can, including its secrets.',
  ),
  container: container.prefault({}),
  network: choice(['off', 'on'], 'off').describe('Network access of programs.'),
  readOnly: z
    .array(z.string().regex(/^\/./, 'Use an absolute path'))
    .max(50)
    .default([])
    .describe('Folders that programs may read, in addition to the workspace and system folders.'),
  env: z
    .array(variableName)
    .max(50)
    .default([])
    .describe('Environment variables that programs get. Secrets of nanobot are excluded.'),
  limits: limits.prefault({}),
});

export type ExecConfig = z.infer<typeof execSchema>;

// The configuration of external lookups: search engines for the web, figures of companies.

/** In the order of use: self-hosted, then those with a key, then public ones. */
const SEARCH_ENGINES = [
  'searxng',
  'brave',
  'tavily',
  'exa',
  'serper',
  'google',
  'duckduckgo',
  'wikipedia',
] as const;
export type SearchEngineName = (typeof SEARCH_ENGINES)[number];

const webAddress = z
  .string()
  .regex(/^(?:https?:\/\/[^\s?#]+)?$/, 'Write an address, e.g. http://localhost:8888');

const engineKey = (variable: string) =>
  secret().default('').describe(`API key. Empty: the environment variable ${variable}.`);

export const searchSection = z.strictObject({
  engines: z
    .array(z.enum(SEARCH_ENGINES))
    .default([...SEARCH_ENGINES])
    .describe(
      'Order of search engines; the next one is used if one fails or is not set up. duckduckgo and wikipedia need no key.',
    ),
  searxngUrl: webAddress
    .default('')
    .describe(
      'Address of your SearXNG, local or remote; its settings need "json" in search.formats.',
    ),
  braveApiKey: secret()
    .default('')
    .describe(
      'API key from api-dashboard.search.brave.com. Empty: the environment variable BRAVE_API_KEY.',
    ),
  tavilyApiKey: engineKey('TAVILY_API_KEY'),
  exaApiKey: engineKey('EXA_API_KEY'),
  serperApiKey: engineKey('SERPER_API_KEY'),
  googleApiKey: engineKey('GOOGLE_SEARCH_API_KEY'),
  googleEngineId: z
    .string()
    .max(200)
    .default('')
    .describe('Id of your programmable search engine at Google (cx); needed beside googleApiKey.'),
  wikipediaLanguage: z
    .string()
    .regex(/^[a-z]{2,12}(?:-[a-z]{2,12})?$/, 'Write a language as in the address, e.g. en or de')
    .default('en')
    .describe('Which Wikipedia is searched.'),
  addresses: z
    .partialRecord(z.enum(SEARCH_ENGINES).exclude(['searxng']), webAddress.min(1))
    .default({})
    .describe('Other addresses of engines by name, e.g. of your own proxy.'),
  maxResults: count(1, 20, 5).describe('Results of one search if the model gives no number.'),
  timeoutSecs: seconds(1, 60, 10).describe('Longest wait for one search engine.'),
});

export const financeSection = z.strictObject({
  apiKey: secret()
    .default('')
    .describe(
      'API key from financialdatasets.ai. Empty: the environment variable FINANCIAL_DATASETS_API_KEY.',
    ),
  apiBase: webAddress
    .default('https://api.financialdatasets.ai')
    .describe('Address of the service, to use your own proxy.'),
});

export type SearchConfig = z.infer<typeof searchSection>;
export type FinanceConfig = z.infer<typeof financeSection>;
