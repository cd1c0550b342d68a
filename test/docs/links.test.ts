// Every link of the documentation leads somewhere, and every page is reachable from the index.

import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { type DocPage, PAGES, proseOf, ROOT } from './pages.ts';

type Link = { readonly from: string; readonly to: string; readonly anchor: string };

function linksOf(page: DocPage): readonly Link[] {
  const targets = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor = ''] = target.split('#');
      const to = path === '' ? page.path : normalize(join(dirname(page.path), path));
      return { from: page.path, to, anchor };
    });
}

/** As GitHub makes them. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

const anchorsOf = ({ text }: DocPage): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(/^#+ (.+)$/gm)]
      .map(([, heading = '']) => slug(heading.trim()))
      .concat([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)),
  );

const pages = new Map(PAGES.map((page) => [page.path, page]));
const links = PAGES.flatMap(linksOf);

it('every link between pages leads to a file, and to a heading where it names one', () => {
  const broken = links.filter(({ to, anchor }) => {
    if (!existsSync(join(ROOT, to))) return true;
    const page = pages.get(to);
    return anchor !== '' && page !== undefined && !anchorsOf(page).has(anchor);
  });
  expect(broken).toEqual([]);
  expect(links.length).toBeGreaterThan(100);
});

it('every page can be reached from docs/README.md', () => {
  const reached = new Set(['README.md', 'docs/README.md']);
  for (const path of reached) {
    for (const { from, to } of links) if (from === path && pages.has(to)) reached.add(to);
  }
  const decisions = (path: string) => path.startsWith('docs/adr/');
  expect([...pages.keys()].filter((path) => !reached.has(path) && !decisions(path))).toEqual([]);
});
