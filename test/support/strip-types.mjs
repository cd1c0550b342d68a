// Makes dist/ of the sources of an early commit in this folder: types become blanks, as Node does it for a checkout.

import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

const root = process.argv[2];
for (const path of readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })) {
  if (path.isDirectory()) continue;
  const from = join(path.parentPath, path.name);
  const to = from.replace(join(root, 'src'), join(root, 'dist'));
  mkdirSync(dirname(to), { recursive: true });
  if (!from.endsWith('.ts')) {
    cpSync(from, to);
    continue;
  }
  writeFileSync(
    to.replace(/\.ts$/, '.js'),
    stripTypeScriptTypes(readFileSync(from, 'utf8')).replace(
      /(from '|import\('|import '|new URL\(')(\.[^']*)\.ts'/g,
      "$1$2.js'",
    ),
  );
}
