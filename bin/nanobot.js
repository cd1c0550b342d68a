#!/usr/bin/env node
// Starts the built program of a package, or the sources of a checkout. Plain old JavaScript, so that
// an old Node can say what it is missing.

import { existsSync } from 'node:fs';

const MINIMUM_MAJOR = 24;

if (Number.parseInt(process.versions.node, 10) < MINIMUM_MAJOR) {
  console.error(
    `nanobot needs Node ${MINIMUM_MAJOR} or newer; this is ${process.versions.node}.\n` +
      'In a checkout, "npm start" brings its own. Elsewhere: npm install --global node@24',
  );
  process.exit(1);
}

const built = new URL('../dist/main.js', import.meta.url);
const source = new URL('../src/main.ts', import.meta.url);
await import((existsSync(built) ? built : source).href);
