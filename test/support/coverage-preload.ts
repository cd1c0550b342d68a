// Loaded before the program (`--import`): counts which functions run. At each SIGUSR2 it writes the source
// files of which a function ran since the signal before, and all that are loaded, to the file named in
// NANOBOT_TEST_COVERAGE.

import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

export type Coverage = { readonly ran: readonly string[]; readonly loaded: readonly string[] };

const file = process.env['NANOBOT_TEST_COVERAGE'] ?? '';
const SOURCE = /^file:.*\/src\/(.+\.ts)$/;

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const loaded = new Set<string>();

async function take(): Promise<void> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = new Set<string>();
  for (const { url, functions } of result) {
    const path = SOURCE.exec(url)?.[1];
    if (path === undefined || url.includes('/node_modules/')) continue;
    loaded.add(path);
    // The function without a name that spans the file is its top level.
    const isBody = ({ functionName, ranges }: (typeof functions)[number]) =>
      functionName === '' && ranges[0]?.startOffset === 0;
    if (functions.some((each) => !isBody(each) && each.ranges.some(({ count }) => count > 0))) {
      ran.add(path);
    }
  }
  const text = JSON.stringify({ ran: [...ran].sort(), loaded: [...loaded].sort() });
  writeFileSync(`${file}.part`, text);
  renameSync(`${file}.part`, file);
}

process.on('SIGUSR2', () => void take());
