// Builds dist/ for publishing: Node does not strip types under node_modules. A checkout never needs
// it. Compiles, then copies what is not TypeScript (pages, tool descriptions) beside it. A copy
// of the lock is the file that npm obeys in a package, so that others install the versions that were tested.

import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
execFileSync(join(root, 'node_modules/.bin/tsc'), ['--project', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
cpSync(join(root, 'src'), dist, {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
});
cpSync(join(root, 'package-lock.json'), join(root, 'npm-shrinkwrap.json'));
