// What a gateway loads before anybody sent a file: its start must not wait for readers of documents
// and images, and while it sees none it must not pay for them in memory.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const LOADED_LATER = [
  ...['sharp', 'unpdf', 'mammoth', 'read-excel-file', 'fflate', 'file-type'],
  ...['undici', 'jsdom', 'openai', '@anthropic-ai/sdk'],
];
const LIST_LOADED = `
  const loaded = new Set();
  const { registerHooks } = await import('node:module');
  registerHooks({
    load(url, context, next) {
      const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
      if (name !== undefined) loaded.add(name);
      return next(url, context);
    },
  });
  await import('./src/app/compose.ts');
  console.log(JSON.stringify([...loaded]));
`;

it('loads no reader of documents, images or pages with the gateway', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', LIST_LOADED], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  const loaded: readonly string[] = JSON.parse(output);
  expect(loaded).toContain('zod');
  expect(loaded.filter((name) => LOADED_LATER.includes(name))).toEqual([]);
});
