// Tool: runs a program of this machine, or a short script, in the workspace. How it is confined and for
// how long at most is the configuration's; who has to be asked first, of the agent.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription } from '../description.ts';
import { MAX_PATH_CHARS } from '../files/workspace-access.ts';
import type { Tool } from '../tool.ts';
import type { ExecRequest, ExecSettings } from './exec-request.ts';
import { type Executor, MAX_WAIT_MS } from './executor.ts';
import { INTERPRETERS } from './scripts.ts';
import { type ExecConfig, MAX_EXEC_SECS } from './settings.ts';

/** For ending a run and telling of it. */
export const END_MS = 10_000;
/** No program was run, so that all of it is ours: what one wrote never begins so. */
export const wasRefused = (found: string) =>
  /^Error \((?:not_found|blocked|permission|invalid_arguments)\): /.test(found);

export const MAX_CODE_CHARS = 200_000;
const MAX_ARGUMENTS = 1000;
const MAX_ARGUMENT_CHARS = 100_000;
const MAX_DETAIL_CHARS = 300;

/** No program's argument can hold the byte that ends it. */
const word = z
  .string()
  .max(MAX_ARGUMENT_CHARS)
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'holds what no argument can');

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
    .describe(
      'Instead of argv: text for the interpreter, where pipes or several steps are needed.',
    ),
  interpreter: z.enum(INTERPRETERS).optional().describe('Of the script; "sh" where left out.'),
  cwd: z
    .string()
    .max(MAX_PATH_CHARS)
    .optional()
    .describe('Folder to begin in, relative to the workspace.'),
  timeout_secs: z
    .number()
    .min(1)
    .max(MAX_EXEC_SECS)
    .optional()
    .describe('Longest run, seconds; it is ended with all it has started.'),
});
type Input = z.infer<typeof input>;

export function createExec(executor: Executor): Tool<Input> {
  return {
    name: 'exec',
    aliases: ['execute', 'run', 'run_command', 'run_shell', 'shell', 'bash', 'terminal', 'command'],
    parameterAliases: {
      argv: ['args', 'program'],
      script: ['command', 'cmd', 'shell_command'],
      cwd: ['working_dir', 'workdir', 'directory', 'dir'],
      timeout_secs: ['timeout', 'timeout_seconds'],
    },
    ...readDescription('exec'),
    access: 'execute',
    // It may show what lies in any file.
    taints: true,
    isOwn: (_input, found) => wasRefused(found),
    input,
    isAvailable: () => executor.isAvailable(),
    unavailableBecause: () => executor.unavailableBecause(),
    timeoutMs: (wanted) => requestedMs(wanted, executor) + MAX_WAIT_MS + END_MS,
    describe: ({ argv, script }) => headOf(argv?.join(' ') ?? script ?? '', MAX_DETAIL_CHARS),
    sealOf: async (wanted, { workspace }) => executor.seal(requestOf(wanted, executor), workspace),
    standing: (wanted) => executor.standing(requestOf(wanted, executor)),
    run: async (wanted, context) => executor.run(requestOf(wanted, executor), context),
  };
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

// From the configuration to what the executor works with.

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
