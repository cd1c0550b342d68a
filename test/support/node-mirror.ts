// What a mirror of Node holds, made of this machine's Node and npm.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export async function makeNodeMirror(mirror: string): Promise<void> {
  const release = join(mirror, 'latest-v24.x');
  const name = `node-${process.version}-linux-${process.arch}`;
  const unpacked = join(mirror, name);
  await mkdir(join(unpacked, 'bin'), { recursive: true });
  await mkdir(release, { recursive: true });
  await cp(process.execPath, join(unpacked, 'bin/node'));
  const npm = await realpath((await execute('sh', ['-c', 'command -v npm'])).stdout.trim());
  const modules = join(unpacked, 'lib/node_modules/npm');
  await cp(dirname(dirname(npm)), modules, { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(unpacked, 'bin/npm'));
  const file = join(release, `${name}.tar.gz`);
  await execute('tar', ['-I', 'gzip -1', '-cf', file, '-C', mirror, name]);
  await rm(unpacked, { recursive: true });
  const sum = createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
  await writeFile(join(release, 'SHASUMS256.txt'), `${sum}  ${name}.tar.gz\n`);
}
