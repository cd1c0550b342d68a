// What `npm pack` gives, installed into an empty place as a stranger would, and run there.

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const INSTALL_TIMEOUT_MS = 180_000;
const PACKED_FROM = [
  'bin',
  'config',
  'docs',
  'scripts',
  'src',
  'workspace',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'LICENSE',
  'README.md',
];
const execute = promisify(execFile);

let folder: string;

function nanobot(...args: readonly string[]) {
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
  const env = { PATH: path, HOME: folder, NANOBOT_HOME: join(folder, 'home') };
  return execute(join(folder, 'node_modules/.bin/nanobot'), args, { env, cwd: folder });
}

/** Packing builds dist/, which must not appear under the tests that run beside this one. */
async function copyCheckout(target: string): Promise<string> {
  await mkdir(target);
  for (const name of PACKED_FROM)
    await cp(join(ROOT, name), join(target, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(target, 'node_modules'));
  return target;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-package-'));
  const checkout = await copyCheckout(join(folder, 'checkout'));
  const packed = await execute('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: checkout,
  });
  const name = /nanobot-[\w.-]+\.tgz/.exec(packed.stdout)?.[0] ?? '';
  const options = ['--prefix', folder, '--prefer-offline', '--ignore-scripts', '--no-audit'];
  await execute('npm', ['install', ...options, join(folder, name)], { cwd: folder });
}, INSTALL_TIMEOUT_MS);

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('says its version', async () => {
    expect((await nanobot('--version')).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('shows the state of a home that does not exist yet', async () => {
    const { stdout } = await nanobot('status');
    expect(stdout).toContain('demo/demo');
    expect(stdout).toMatch(/gateway\s+does not run/);
  });

  it('answers in the terminal, tools included', async () => {
    const { stdout } = await nanobot('agent', '-m', 'what time is it');
    expect(stdout).toMatch(/\d{4}-\d{2}-\d{2}/);
  });
});
