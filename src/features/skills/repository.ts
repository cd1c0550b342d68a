// Which archive a repository's name or address stands for.

import type { GuardedFiles } from '../../lib/files/guarded-files.ts';

export type RepositoryPlace = {
  /** Of a tar archive. */
  readonly url: string;
  /** Inside of the archive, below its only folder; empty = all of it. */
  readonly folder: string;
  /** As a person would name it. */
  readonly source: string;
};

const PART = '[A-Za-z0-9._-]+';
const SHORT = new RegExp(`^(${PART})/(${PART})((?:/${PART})*)(?:#([A-Za-z0-9._/-]+))?$`);
const TREE = /^(?:-\/)?(?:tree|src\/branch|blob)\/([^/]+)((?:\/[^/]+)*)$/;
const ARCHIVE = /\.(?:tar|tar\.gz|tgz)$/i;

/** Undefined where it is neither. */
export function archiveOf(where: string): RepositoryPlace | undefined {
  if (!/^https?:/i.test(where)) return shortName(where);
  const url = URL.parse(where);
  if (url === null) return undefined;
  if (ARCHIVE.test(url.pathname)) return { url: url.href, folder: '', source: where };
  return browsed(url);
}

function shortName(where: string): RepositoryPlace | undefined {
  const [, owner, name, folder = '', ref = 'HEAD'] = SHORT.exec(where) ?? [];
  if (owner === undefined || name === undefined || hasDots(where)) return undefined;
  const url = `https://codeload.github.com/${owner}/${name}/tar.gz/${ref}`;
  return { url, folder: folder.slice(1), source: where };
}

/** As copied from a browser. */
function browsed({ host, pathname, href }: URL): RepositoryPlace | undefined {
  const [owner, repository, ...rest] = pathname.split('/').filter((part) => part !== '');
  if (owner === undefined || repository === undefined || hasDots(pathname)) return undefined;
  const name = repository.replace(/\.git$/, '');
  const [, ref = 'HEAD', below = ''] = TREE.exec(rest.join('/')) ?? [];
  const folder = below.slice(1).replace(/\/?SKILL\.md$/, '');
  const url = ARCHIVES[host]?.(owner, name, ref);
  return url === undefined ? undefined : { url, folder, source: href };
}

const ARCHIVES: Readonly<Record<string, (owner: string, name: string, ref: string) => string>> = {
  'github.com': (owner, name, ref) => `https://codeload.github.com/${owner}/${name}/tar.gz/${ref}`,
  'gitlab.com': (owner, name, ref) =>
    `https://gitlab.com/${owner}/${name}/-/archive/${ref}/${name}.tar.gz`,
  'codeberg.org': (owner, name, ref) =>
    `https://codeberg.org/${owner}/${name}/archive/${ref}.tar.gz`,
};

const hasDots = (path: string) => path.split('/').includes('..');

// The files of one skill, by path below its folder.

const MAX_FILES = 200;
const MAX_DEPTH = 5;

/** Links and what is protected are left out. `root` holds the skill's folder. */
export async function listSkillFiles(
  files: GuardedFiles,
  root: string,
  name: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  const walk = async (below: string, depth: number): Promise<void> => {
    const path = below === '' ? name : `${name}/${below}`;
    const { entries } = await files.list(root, path, { maxEntries: MAX_FILES });
    for (const entry of entries) {
      if (found.length >= MAX_FILES) return;
      const inside = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.kind === 'file') found.push(inside);
      if (entry.kind === 'folder' && depth < MAX_DEPTH) await walk(inside, depth + 1);
    }
  };
  await walk('', 1);
  return found;
}
