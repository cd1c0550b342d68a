// Lark's SDK takes some 60 MB: whoever does not use Lark never loads it.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

/** How many files of the SDK a process has loaded after importing these. */
async function sdkFilesAfter(...files: readonly string[]): Promise<number> {
  const script = `
    import { createRequire } from 'node:module';
    for (const file of ${JSON.stringify(files)}) await import('./' + file);
    const loaded = Object.keys(createRequire(process.cwd() + '/package.json').cache);
    console.log(loaded.filter((path) => path.includes('@larksuiteoapi')).length);`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  return Number(stdout);
}

test('the SDK is loaded with the channel and with nothing else', async () => {
  expect(await sdkFilesAfter('src/channels/lark/lark.ts')).toBeGreaterThan(0);
  const shared = ['src/channels/index.ts', 'src/channels/channel-setup.ts', 'src/boot.ts'];
  expect(await sdkFilesAfter(...shared)).toBe(0);
});
