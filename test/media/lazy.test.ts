// What a gateway loads before anybody sent a file: its start must not wait for readers of documents
// and images or for Node's own fetch, and while it needs none it must not pay for them in memory.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const LOADED_LATER = [
  ...['sharp', 'unpdf', 'mammoth', 'fflate', 'file-type'],
  ...['undici', 'jsdom', 'openai', '@anthropic-ai/sdk'],
  'internal/deps/undici/undici',
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
  await import('./src/boot.ts');
  await import('./src/channels/telegram/telegram.ts');
  for (const builtin of process.moduleLoadList) loaded.add(builtin.split(' ').at(-1));
  console.log(JSON.stringify([...loaded]));
`;

it('loads no reader of documents, images or pages and no fetch with the gateway', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', LIST_LOADED], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  const loaded: readonly string[] = JSON.parse(output);
  expect(loaded).toContain('zod');
  expect(loaded.filter((name) => LOADED_LATER.includes(name))).toEqual([]);
});
