// What `npm pack` gives, installed into an empty place as a stranger would, and run there.

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFullCampaign } from '../support/campaign.ts';

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
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'LICENSE',
  'README.md',
];
const execute = promisify(execFile);

type Lock = { readonly packages: Readonly<Record<string, { readonly version: string }>> };

let folder: string;
let tarball: string;

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
  tarball = /nanobot-[\w.-]+\.tgz/.exec(packed.stdout)?.[0] ?? '';
  const options = ['--prefix', folder, '--prefer-offline', '--ignore-scripts', '--no-audit'];
  await execute('npm', ['install', ...options, join(folder, tarball)], { cwd: folder });
}, INSTALL_TIMEOUT_MS);

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  it('says its version', async () => {
    expect((await nanobot('--version')).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it(
    'brings the versions that were tested, which npm ci obeys where it is unpacked',
    async () => {
      const unpacked = join(folder, 'unpacked');
      await mkdir(unpacked);
      await execute('tar', ['-xf', join(folder, tarball), '-C', unpacked, '--strip-components=1']);
      const read = async (path: string): Promise<Lock> => JSON.parse(await readFile(path, 'utf8'));
      const { packages: tested } = await read(join(ROOT, 'package-lock.json'));
      const { packages: brought } = await read(join(unpacked, 'npm-shrinkwrap.json'));
      expect(brought).toEqual(tested);
      // The short campaign has npm ci run by the Dockerfile alone.
      if (!isFullCampaign()) return;
      await execute('npm', ['ci', '--omit=dev', '--prefer-offline', '--ignore-scripts'], {
        cwd: unpacked,
      });
      const { packages } = await read(join(unpacked, 'node_modules/.package-lock.json'));
      const installed = Object.entries(packages);
      const differing = installed.filter(
        ([path, { version }]) => tested[path]?.version !== version,
      );
      expect(installed.length).toBeGreaterThan(300);
      expect(differing).toEqual([]);
    },
    INSTALL_TIMEOUT_MS,
  );

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
