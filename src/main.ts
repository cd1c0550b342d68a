// The entry point: parses argv, runs one command, sets the exit code.

import { existsSync } from 'node:fs';
import { runCli } from './cli/cli.ts';
import { explainError } from './cli/explain-error.ts';
import { createTerminal, EXIT } from './cli/terminal.ts';
import { whereTyped } from './kernel/typed-command.ts';
import { t } from './lib/texts.ts';

const terminal = createTerminal(process);

process.on('uncaughtException', (error) => {
  for (const line of explainError(error, terminal.env, terminal.home)) terminal.note(line);
  process.exit(EXIT.failure);
});
// Paths on the command line are relative to the folder in which the person typed.
const typedIn = whereTyped(process.env);
if (typedIn !== undefined && existsSync(typedIn)) process.chdir(typedIn);
// A full disk behind the output must not end a gateway, nor leave half an export that looks whole.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of the output closed it, as `head` does.
  if (error.code === 'EPIPE') process.exit();
  if (process.exitCode === undefined)
    terminal.note(t`nanobot: the output cannot be written: ${error.message}`);
  process.exitCode = EXIT.failure;
});
// Nowhere is left to say so.
process.stderr.on('error', () => undefined);

void runCli(process.argv.slice(2), terminal).then((code) => {
  // Idle keep-alive connections would delay the exit by seconds. An error of the output comes in the
  // next round of the event loop.
  const leave = () => setImmediate(() => process.exit(code || process.exitCode));
  process.stdout.write('', leave);
});
