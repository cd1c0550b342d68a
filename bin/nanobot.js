#!/usr/bin/env node
// Starts the bundle of a package, or the sources of a checkout. Plain JavaScript, so that an
// old Node can say what it is missing, and a new one need not strip types before its cache is on.

import { existsSync } from 'node:fs';
import * as modules from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

const MINIMUM_MAJOR = 24;
/** A gateway is killed more often than it leaves: what it compiled is kept soon after the start. */
const KEEP_COMPILED_AFTER_MS = 5000;

if (Number.parseInt(process.versions.node, 10) < MINIMUM_MAJOR) {
  console.error(
    `nanobot needs Node ${MINIMUM_MAJOR} or newer; this is ${process.versions.node}.\n` +
      'In a checkout, "npm start" brings its own. Elsewhere: npm install --global node@24',
  );
  process.exit(1);
}

// In the user's own cache: whoever can write to this folder decides what the program does.
const cacheFolder = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
modules.enableCompileCache(join(cacheFolder, 'nanobot', 'compiled'));
setTimeout(() => modules.flushCompileCache(), KEEP_COMPILED_AFTER_MS).unref();

// A package has no sources. A checkout runs them, whatever was built there before.
const source = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/main.js', import.meta.url);
// Without await, which the oldest Nodes refuse to parse here.
void import((existsSync(source) ? source : built).href);
