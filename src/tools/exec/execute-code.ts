// Tool: runs a piece of code. Without files of the workspace nothing but the code goes in, and so
// nothing of others comes out.

import { z } from 'zod';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { END_MS, MAX_CODE_CHARS, wasRefused } from './exec.ts';
import type { ExecRequest } from './exec-request.ts';
import { type Executor, MAX_WAIT_MS } from './executor.ts';
import type { Interpreter } from './scripts.ts';
import { MAX_EXEC_SECS } from './settings.ts';

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
    .describe('Whole program; what it prints is the result.'),
  files: z
    .boolean()
    .default(false)
    .describe('Whether it works in the workspace and may change its files. Else it sees none.'),
  timeout_secs: z.number().min(1).max(MAX_EXEC_SECS).optional().describe('Longest run, seconds.'),
});
type CodeInput = z.infer<typeof codeInput>;

export function createExecuteCode(executor: Executor): Tool<CodeInput> {
  return {
    name: 'execute_code',
    aliases: ['run_code', 'code_interpreter', { name: 'python', implies: { language: 'python' } }],
    parameterAliases: { code: ['source', 'program'], timeout_secs: ['timeout'] },
    ...readDescription('execute_code'),
    access: 'execute',
    taints: true,
    isOwn: ({ files }, found) => (!files && executor.isIsolated()) || wasRefused(found),
    input: codeInput,
    isAvailable: () => executor.isAvailable(),
    unavailableBecause: () => executor.unavailableBecause(),
    timeoutMs: (wanted) => codeRequest(wanted, executor).timeoutMs + MAX_WAIT_MS + END_MS,
    describe: ({ language, code }) =>
      headOf(`${language}: ${code.trim().split('\n', 1)[0] ?? ''}`, MAX_CODE_DETAIL_CHARS),
    sealOf: (wanted, { workspace }) => executor.seal(codeRequest(wanted, executor), workspace),
    standing: (wanted) => executor.standing(codeRequest(wanted, executor)),
    run: (wanted, context) => executor.run(codeRequest(wanted, executor), context),
  };
}

function codeRequest(
  { language, code, files, timeout_secs }: CodeInput,
  executor: Executor,
): ExecRequest {
  return {
    work: { kind: 'script', interpreter: BY_LANGUAGE[language], code },
    folder: files ? '.' : undefined,
    timeoutMs: timeout_secs === undefined ? executor.defaultTimeoutMs() : timeout_secs * 1000,
  };
}
