// The words that the glossary retired do not come back: single words in identifiers and comments, phrases also in texts
// and pages. Names that are stored or configured stay.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PAGES, proseOf, ROOT } from './pages.ts';

const GLOSSARY = 'docs/glossary.md';
const COMMENT = /(?:^\s*(?:\/\*\*?|\*|\/\/)|\s\/\/ ).*$/;
const STRING = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`/g;

/** The rows of the table: the retired word or phrase, then stored names that hold it. */
const rows = (PAGES.find(({ path }) => path === GLOSSARY)?.text ?? '')
  .replace(/^[\s\S]*\n## Retired words\n/, '')
  .replace(/\n## [\s\S]*$/, '')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => [...line.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word));
const words = rows.map(([word = '']) => word);
const stored = new Set(rows.flatMap(([, ...names]) => names));

const patternOf = (retired: readonly string[]) =>
  new RegExp(`\\b(?:${retired.join('|')})s?\\b`, 'i');
const anyWord = patternOf(words);
const phrase = patternOf(words.filter((word) => word.includes(' ')));

/** `createHelperDesk` as `create Helper Desk`. */
const spaced = (name: string) => name.replace(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|_/g, ' $&').trim();

function retiredIn(source: string): readonly string[] {
  return source.split('\n').flatMap((line) => {
    const comment = COMMENT.exec(line)?.[0].replace(/`[^`]+`/g, '') ?? '';
    const names =
      line
        .replace(COMMENT, '')
        .replace(STRING, '')
        .match(/[A-Za-z_$][\w$]*/g) ?? [];
    const texts = line.replace(COMMENT, '').match(STRING)?.join('\n') ?? '';
    return [
      ...names.filter((name) => !stored.has(name) && anyWord.test(spaced(name))),
      ...(anyWord.test(comment) || phrase.test(texts) ? [line.trim()] : []),
    ];
  });
}

it('finds what is retired', () => {
  expect(words).toContain('helper');
  const lines = [
    "const helperDesk = 'x';",
    '// whoever asks',
    "preferredDoor = 'words of others';",
  ];
  expect(retiredIn(lines.join('\n'))).toEqual(['helperDesk', lines[1], lines[2]]);
});

const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(?:ts|js)$/.test(path))
  .map((path) => join('src', path));

it('no source uses a retired word', () => {
  const found = SOURCES.flatMap((path) =>
    retiredIn(readFileSync(join(ROOT, path), 'utf8')).map((what) => `${path}: ${what}`),
  );
  expect(found).toEqual([]);
});

it('no page uses a retired phrase', () => {
  const found = PAGES.filter(({ path, text }) => {
    const [prose = ''] = path === GLOSSARY ? text.split('\n## Say / not\n') : [text];
    return phrase.test(proseOf({ path, text: prose }));
  });
  expect(found.map(({ path }) => path)).toEqual([]);
});
