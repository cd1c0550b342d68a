// The command line in this process, over a home of its own and a scripted model server: what it prints,
// what it leaves with, and what it leaves behind.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli } from '../../src/cli/cli.ts';
import { createTerminal, type Terminal } from '../../src/cli/terminal.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { type EvalResult, evalResult } from '../../src/labs/eval/rules/result.ts';
import { type LlmServer, startLlmServer } from '../support/llm-server.ts';

export type CliRun = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
};

export interface EvalRig extends AsyncDisposable {
  readonly server: LlmServer;
  readonly home: ReturnType<typeof homeOf>;
  cli(...args: readonly string[]): Promise<CliRun>;
  /** With `--json`: what was printed, and the same as it lies in the home. */
  measure(...args: readonly string[]): Promise<CliRun & { readonly result: EvalResult }>;
}

export async function createEvalRig(
  config: Readonly<Record<string, unknown>> = {},
): Promise<EvalRig> {
  const root = await mkdtemp(join(tmpdir(), 'nanobot-eval-test-'));
  const server = await startLlmServer({ record: false });
  const env = { NANOBOT_HOME: root, HOME: root, PATH: process.env['PATH'] ?? '' };
  const home = homeOf(env);
  const written = {
    version: 1,
    // What it would answer is no measure of the one that is asked.
    agents: { defaults: { model: 'openai/sim', fallbackModels: ['openai/backup'] } },
    providers: { openai: { apiBase: server.openaiBase, apiKey: 'k' } },
    retry: { providerAttempts: 0 },
    gateway: { port: 0 },
    ...config,
  };
  await writeFile(join(root, 'config.json'), JSON.stringify(written), { mode: 0o600 });

  async function cli(...args: readonly string[]): Promise<CliRun> {
    const out: string[] = [];
    const err: string[] = [];
    const print = (line: string) => void out.push(line);
    const terminal: Terminal = {
      ...createTerminal(process),
      ...{ env, home, print, tell: print },
      note: (line) => void err.push(line),
      printJson: (value) => print(JSON.stringify(value)),
      style: (_style, text) => text,
      interactive: false,
    };
    const code = await runCli(args, terminal);
    return { code, stdout: out.join('\n'), stderr: err.join('\n') };
  }

  return {
    server,
    home,
    cli,
    async measure(...args) {
      const run = await cli('eval', ...args, '--json');
      if (run.stdout === '') throw new Error(run.stderr);
      const result = evalResult.parse(JSON.parse(run.stdout));
      const names = await readdir(home.eval);
      const stored = names.find((name) => name.includes(result.startedAt.replace(/[:.]/g, '-')));
      if (stored === undefined) throw new Error(`not kept: ${names.join(' ')}`);
      const kept: unknown = JSON.parse(await readFile(join(home.eval, stored), 'utf8'));
      if (JSON.stringify(kept) !== run.stdout) throw new Error('kept otherwise');
      return { ...run, result };
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
