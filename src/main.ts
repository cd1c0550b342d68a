// The entry point: parses argv, runs one command, sets the exit code.

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
// Paths on the command line are relative to the folder in which the person typed.
const typedIn = whereTyped(process.env);
if (typedIn !== undefined && existsSync(typedIn)) process.chdir(typedIn);
// The reader of the output closed it, as `head` does.
process.stdout.on('error', () => process.exit());

void runCli(process.argv.slice(2), terminal).then((code) => {
  process.exitCode = code;
  // Idle keep-alive connections would delay the exit by seconds.
  process.stdout.write('', () => process.exit());
});
