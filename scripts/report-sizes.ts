// Reports the size of the source: lines of code without blanks and comments, files, and what is
// worth a look: long files, and small files that only one neighbour imports. It refuses nothing: a
// file has one subject, not one length.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const MAX_LINES = 400;
const SMALL_LINES = 60;

const files = globSync('src/**/*.{ts,tsx}').map((path) => {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return { path, lines, text: lines.join('\n') };
});

/** Comments of this code start a line: `//`, or a block whose other lines start with a star. */
const isCode = (line: string) => !/^\s*(\/\/|\/\*|\*|$)/.test(line);

const importers = new Map<string, Set<string>>();
for (const { path, text } of files)
  for (const [, target = ''] of text.matchAll(/(?:from|import\() ?'(\.{1,2}\/[^']+)'/g)) {
    const imported = normalize(join(dirname(path), target));
    importers.set(imported, (importers.get(imported) ?? new Set()).add(path));
  }

const long = files.filter(({ lines }) => lines.length > MAX_LINES);
const small = files.filter(({ path, lines }) => {
  const [importer = '', ...others] = importers.get(path) ?? [];
  return lines.length < SMALL_LINES && others.length === 0 && dirname(importer) === dirname(path);
});
const code = files.reduce((sum, { lines }) => sum + lines.filter(isCode).length, 0);
console.log(`${code} lines of code in ${files.length} source files`);
for (const [title, found] of [
  [`longer than ${MAX_LINES} lines`, long],
  [`shorter than ${SMALL_LINES} lines, with a single importer in the same folder`, small],
] as const)
  console.log([`${found.length} ${title}:`, ...found.map(({ path }) => `  ${path}`)].join('\n'));
