// The program's start: parse argv, run one command, set the exit code. The only top-level await.

import { runCli } from './cli/cli.ts';
import { createTerminal } from './cli/terminal.ts';

/** How long what a command left behind (an open socket) may keep the process alive. */
const LINGER_MS = 2000;

process.exitCode = await runCli(process.argv.slice(2), createTerminal(process));
setTimeout(() => process.exit(), LINGER_MS).unref();
