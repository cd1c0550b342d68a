// The program's start: parse argv, run one command, set the exit code. The only top-level await.

import { existsSync } from 'node:fs';
import { runCli } from './cli/cli.ts';
import { explainError } from './cli/explain-error.ts';
import { createTerminal, EXIT } from './cli/terminal.ts';
import { whereTyped } from './kernel/typed-command.ts';

const terminal = createTerminal(process);

process.on('uncaughtException', (error) => {
  for (const line of explainError(error, terminal.env, terminal.home)) terminal.note(line);
  process.exit(EXIT.failure);
});
// Paths on the command line count from there.
const typedIn = whereTyped(process.env);
if (typedIn !== undefined && existsSync(typedIn)) process.chdir(typedIn);
// Whoever read the output has left, as `head` does.
process.stdout.on('error', () => process.exit());

process.exitCode = await runCli(process.argv.slice(2), terminal);
// Connections kept for reuse would hold the process for seconds.
process.stdout.write('', () => process.exit());
