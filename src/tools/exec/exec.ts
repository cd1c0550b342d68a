// Tools that run a program, a short script or a piece of code in the workspace, and their
// construction
// from the configuration.

import { hash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { z } from 'zod';
import { type Kernel, port } from '../../kernel/feature.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import {
  asciiText,
  inlineCode,
  type RequestWords,
} from '../../kernel/questions/rules/question-text.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { MAX_PATH_CHARS } from '../files/file-tools.ts';
import type { Provenance } from '../files/provenance.ts';
import { defineTool, type Tool, type ToolContext } from '../tool.ts';
import { createExecutor, type Executor, MAX_WAIT_MS } from './executor.ts';
import { createKnownSandbox, thisSystem } from './find-sandbox.ts';
import type { ExecRequest, ExecSettings } from './plan-run.ts';
import { INTERPRETERS, type Interpreter, removeOldFolders } from './scripts.ts';
import { type ExecConfig, MAX_EXEC_SECS } from './settings.ts';

/** For ending a run and reporting it. */
export const END_MS = 10_000;
/**
 * No program was run, so all of it is the program's own text: output of a program never starts like
 * this.
 */
export const wasRefused = (found: string) =>
  /^(?:Permission denied|Error \((?:not_found|invalid_arguments)\)): /.test(found);

const MAX_CODE_CHARS = 200_000;
const MAX_ARGUMENTS = 1000;
const MAX_ARGUMENT_CHARS = 100_000;
const MAX_DETAIL_CHARS = 300;

/** No program's argument can contain the byte that ends it. */
const word = z
  .string()
  .max(MAX_ARGUMENT_CHARS)
  .refine(
    (text) => !text.includes('\0') && text.isWellFormed(),
    'contains a character that no argument can',
  );

const input = z.object({
  argv: z
    .array(word)
    .min(1)
    .max(MAX_ARGUMENTS)
    .optional()
    .describe('Program and arguments, one each, without a shell. Example: ["git", "status"].'),
  script: z
    .string()
    .max(MAX_CODE_CHARS)
    .optional()
    .describe('Instead of argv: text for the interpreter, for pipes or several steps.'),
  interpreter: z.enum(INTERPRETERS).optional().describe('Of the script; default "sh".'),
  cwd: z
    .string()
    .max(MAX_PATH_CHARS)
    .optional()
    .describe('Working directory, relative to the workspace.'),
  timeout_secs: z
    .number()
    .min(1)
    .max(MAX_EXEC_SECS)
    .optional()
    .describe('Time limit in seconds; then it and all it started is ended.'),
});
type Input = z.infer<typeof input>;

export function createExec(executor: Executor, own?: Provenance): Tool<Input> {
  return defineTool({
    name: 'exec',
    aliases: ['execute', 'run', 'run_command', 'run_shell', 'shell', 'bash', 'terminal', 'command'],
    parameterAliases: {
      argv: ['args', 'program'],
      script: ['command', 'cmd', 'shell_command'],
      cwd: ['working_dir', 'workdir', 'directory', 'dir'],
      timeout_secs: ['timeout', 'timeout_seconds'],
    },
    access: 'execute',
    reachOf: () => (executor.isIsolated() ? 'machine' : 'outside'),
    // It may show the content of any file.
    taints: true,
    isOwn: (_input, found) => wasRefused(found),
    input,
    isAvailable: () => executor.isAvailable(),
    unavailableBecause: () => executor.unavailableBecause(),
    timeoutMs: (wanted) => requestedMs(wanted, executor) + MAX_WAIT_MS + END_MS,
    requestOf: (wanted) => programWords(wanted, executor),
    describe: ({ argv, script }) => headOf(argv?.join(' ') ?? script ?? '', MAX_DETAIL_CHARS),
    sealOf: async (wanted, { workspace }) => executor.seal(requestOf(wanted, executor), workspace),
    standing: (wanted) => executor.standing(requestOf(wanted, executor)),
    run: async (wanted, context) => recorded(requestOf(wanted, executor), context, executor, own),
  });
}

/** `Run `npm test` in project/, no network?` */
function programWords({ argv, script, interpreter = 'sh', cwd = '.' }: Input, executor: Executor) {
  const where = `${cwd === '.' ? 'the workspace' : folderName(cwd)}, ${executor.confinement()}`;
  const command = script ?? argv?.map(shellWord).join(' ') ?? '';
  const code = inlineCode(command, asciiText);
  const by = script === undefined ? '' : ` with ${interpreter}`;
  if (code !== undefined) return { sentence: t`Run ${code}${by} in ${where}?` };
  const what = script === undefined ? 'this command' : `this ${interpreter} script`;
  return { sentence: t`Run ${what} in ${where}?`, text: command, file: 'program.txt' };
}

const folderName = (cwd: string) =>
  /^[\w./-]+$/.test(cwd) ? `${cwd.replace(/\/+$/, '')}/` : verbatim(asciiText(cwd));

/** Quoted if it could be read as several words, or as shell syntax. */
const shellWord = (text: string) => (/^[\w@%+=:,./^~-]+$/.test(text) ? text : JSON.stringify(text));

/** Its output is recorded as untrusted if untrusted content is within its reach. */
function recorded(
  request: ExecRequest,
  context: ToolContext,
  executor: Executor,
  own: Provenance | undefined,
): Promise<string> {
  const run = () => executor.run(request, context);
  if (own === undefined || (request.folder === undefined && executor.isIsolated())) return run();
  return own.running(run, context, !executor.isIsolated() || executor.seesMore());
}

const requestedMs = ({ timeout_secs }: Input, executor: Executor) =>
  timeout_secs === undefined ? executor.defaultTimeoutMs() : timeout_secs * 1000;

/** @throws ToolError invalid_arguments */
function requestOf(wanted: Input, executor: Executor): ExecRequest {
  const { argv, script, interpreter = 'sh', cwd = '.' } = wanted;
  const common = { folder: cwd, timeoutMs: requestedMs(wanted, executor) };
  const [program = '', ...args] = argv ?? [];
  if ((argv === undefined) === (script === undefined)) {
    throw new ToolError('invalid_arguments', 'give either argv or script');
  }
  if (script !== undefined) {
    return { ...common, work: { kind: 'script', interpreter, code: script } };
  }
  if (program === '') throw new ToolError('invalid_arguments', 'the program has no name');
  return { ...common, work: { kind: 'argv', argv: [program, ...args] } };
}

// Converts the configuration to the executor's settings.

const MEGABYTE = 1_000_000;

export function execSettings(config: ExecConfig): ExecSettings {
  const { limits } = config;
  return {
    isEnabled: config.enabled,
    hasNetwork: config.network === 'on',
    readOnly: config.readOnly,
    passedOn: config.env,
    limits: {
      timeoutMs: limits.timeoutSecs * 1000,
      memoryBytes: limits.memoryMb * MEGABYTE,
      maxProcesses: limits.maxProcesses,
      cpuSeconds: limits.cpuSecs,
      fileBytes: limits.maxFileMb * MEGABYTE,
      diskBytes: limits.maxDiskMb * MEGABYTE,
      outputBytes: limits.outputBytes,
    },
  };
}

// Tool: runs a piece of code. Without files of the workspace its only input is the code, so its
// output contains no untrusted content.

const BY_LANGUAGE = {
  javascript: 'node',
  typescript: 'node',
  python: 'python3',
  shell: 'bash',
} as const satisfies Readonly<Record<string, Interpreter>>;
type Language = keyof typeof BY_LANGUAGE;

const MAX_CODE_DETAIL_CHARS = 200;

const codeInput = z.object({
  language: z
    .enum(Object.keys(BY_LANGUAGE) as [Language, ...Language[]])
    .default('javascript')
    .describe('javascript and typescript: ES module in Node.js.'),
  code: z
    .string()
    .min(1)
    .max(MAX_CODE_CHARS)
    .describe('The whole program; its output is the result.'),
  files: z
    .boolean()
    .default(false)
    .describe('true: it works in the workspace and may change its files. Else it sees none.'),
  timeout_secs: z.number().min(1).max(MAX_EXEC_SECS).optional().describe('Time limit in seconds.'),
});

export function createExecuteCode(executor: Executor, own?: Provenance) {
  return defineTool({
    name: 'execute_code',
    aliases: ['run_code', 'code_interpreter', { name: 'python', implies: { language: 'python' } }],
    parameterAliases: { code: ['source', 'program'], timeout_secs: ['timeout'] },
    access: 'execute',
    reachOf: () => (executor.isIsolated() ? 'machine' : 'outside'),
    taints: true,
    isOwn: ({ files }, found) => (!files && executor.isIsolated()) || wasRefused(found),
    input: codeInput,
    isAvailable: () => executor.isAvailable(),
    unavailableBecause: () => executor.unavailableBecause(),
    timeoutMs: (wanted) => codeRequest(wanted, executor).timeoutMs + MAX_WAIT_MS + END_MS,
    requestOf: ({ language, code, files }): RequestWords => ({
      sentence: t`Run this ${language} program ${files ? t`in the workspace` : t`without files`}, ${executor.confinement()}?`,
      ...{ text: code, file: 'program.txt' },
    }),
    describe: ({ language, code }) =>
      headOf(`${language}: ${code.trim().split('\n', 1)[0] ?? ''}`, MAX_CODE_DETAIL_CHARS),
    sealOf: (wanted, { workspace }) => executor.seal(codeRequest(wanted, executor), workspace),
    standing: (wanted) => executor.standing(codeRequest(wanted, executor)),
    run: (wanted, context) => recorded(codeRequest(wanted, executor), context, executor, own),
  });
}

function codeRequest(
  { language, code, files, timeout_secs }: z.infer<typeof codeInput>,
  executor: Executor,
): ExecRequest {
  return {
    work: { kind: 'script', interpreter: BY_LANGUAGE[language], code },
    folder: files ? '.' : undefined,
    timeoutMs: timeout_secs === undefined ? executor.defaultTimeoutMs() : timeout_secs * 1000,
  };
}

/** Without /proc Node cannot determine its own path. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const OWNER_CHARS = 16;
/** Longer than any run. */
const OLD_MS = 3_600_000;

export const EXECUTOR = port<Executor>('executor');

export function install(kernel: Kernel): void {
  kernel.provide(EXECUTOR, openExecutor(kernel));
}

type ExecParts = Pick<Kernel, 'live' | 'clock' | 'log' | 'home' | 'env'>;

export function openExecutor({ live, clock, log, home, env }: ExecParts): Executor {
  const system = thisSystem(env);
  const root = realpathSync(home.root);
  const owner = hash('sha256', root).slice(0, OWNER_CHARS);
  const sandbox = createKnownSandbox({
    system,
    log,
    clock,
    owner,
    config: () => live.config.tools.exec,
  });
  // In parallel with the start, so that nothing waits for it later.
  sandbox();
  const tidying = removeOldFolders(clock.now() - OLD_MS);
  tidying.catch((error: unknown) => log.warn('old scripts not removed', { error }));
  return createExecutor({
    sandbox,
    settings: () => execSettings(live.config.tools.exec),
    forbidden: [root],
    env,
    nodePath: realPath(system.nodePath),
    redact: live.redact,
  });
}
