// The pages of the documentation: the README and everything below docs/.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

export type DocPage = {
  /** Below the root of the repository, e.g. `docs/get-started.md`. */
  readonly path: string;
  readonly text: string;
};

export const PAGES: readonly DocPage[] = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true })
    .map(String)
    .filter((path) => path.endsWith('.md'))
    .sort()
    .map((path) => join('docs', path)),
].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const FENCE = /^ *(`{3,})([^\n]*)\n([\s\S]*?)^ *\1 *$/gm;

/** The contents of the fenced blocks of one language, in order. */
export const blocksOf = (page: DocPage, language: string): readonly string[] =>
  [...page.text.matchAll(FENCE)]
    .filter(([, , name = '']) => name.trim() === language)
    .map(([, , , content = '']) => content);

/** The page without code. */
export const proseOf = (page: DocPage): string =>
  page.text.replace(FENCE, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ' '));

/** What a page shows, as a pattern: `…` in a line stands for any text, a line of `…` alone for any lines. */
export function patternOf(shown: string): RegExp {
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const lines = shown
    .split('\n')
    .map((line) => (line.trim() === '…' ? '[\\s\\S]*?' : line.split('…').map(literal).join('.*')));
  return new RegExp(`^${lines.join('\n')}$`);
}
