// The files of one skill, by path below its folder.

import type { GuardedFiles } from '../lib/guarded-files.ts';

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
