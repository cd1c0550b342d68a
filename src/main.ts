// The program's start: parse argv, run one command, set the exit code. The only top-level await.

import { enableCompileCache, flushCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** How long what a command left behind (an open socket) may keep the process alive. */
const LINGER_MS = 2000;
/** A gateway is killed more often than it leaves: what it compiled is kept soon after the start. */
const KEEP_COMPILED_AFTER_MS = 5000;

// In the user's own cache: whoever can write to this folder decides what the program does.
const cacheFolder = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
enableCompileCache(join(cacheFolder, 'nanobot', 'compiled'));
setTimeout(flushCompileCache, KEEP_COMPILED_AFTER_MS).unref();

const { runCli } = await import('./cli/cli.ts');
const { createTerminal } = await import('./cli/terminal.ts');

process.exitCode = await runCli(process.argv.slice(2), createTerminal(process));
setTimeout(() => process.exit(), LINGER_MS).unref();
