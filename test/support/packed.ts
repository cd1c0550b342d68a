// Before the system tests: packs the program once, as for publishing. They run what is in the package, not the sources.

import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const PACKED_FROM = [
  'bin',
  'config',
  'deploy',
  'docs',
  'scripts',
  'skills',
  'src',
  'workspace',
  'package.json',
  'package-lock.json',
  'LICENSE',
  'README.md',
];
const execute = promisify(execFile);

let folder: string;

/** Packing writes beside the sources, where other tests run: it is done in a copy. */
export async function setup(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-packed-'));
  // Some tests run it as another user.
  await chmod(folder, 0o755);
  const checkout = join(folder, 'checkout');
  const unpacked = join(folder, 'unpacked');
  for (const name of PACKED_FROM)
    await cp(join(ROOT, name), join(checkout, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  const { stdout } = await execute('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: checkout,
  });
  const tarball = join(folder, /nanobot-[\w.-]+\.tgz/.exec(stdout)?.[0] ?? '');
  await mkdir(unpacked);
  await execute('tar', ['-xf', tarball, '-C', unpacked, '--strip-components=1']);
  await symlink(join(ROOT, 'node_modules'), join(unpacked, 'node_modules'));
  await mkdir(join(unpacked, 'test/support'), { recursive: true });
  await symlink('../../bin/nanobot.js', join(unpacked, 'test/support/nanobot'));
  process.env['NANOBOT_TEST_TARBALL'] = tarball;
  process.env['NANOBOT_TEST_PACKAGE'] = unpacked;
}

export async function teardown(): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
