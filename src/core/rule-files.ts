// Which files of the workspace later turns are told to follow: writing there is more than writing.
// Decided from the path as a call names it, in doubt for the stricter.

import { SKILLS_FOLDER, WORKSPACE_FILES } from './prompt.ts';
import type { ToolAccess } from './rights.ts';

const MEMORY_FOLDER = 'memory';
/** Files of the prompt by name, wherever they stand. */
const RULE_NAMES = new Set(WORKSPACE_FILES.map((name) => name.toLowerCase()));
const CONTEXT_NAME = /^context(?:-.*)?\.md$/;
/** Letters that a file system may take for others, or for none. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** Some file systems leave them out. */
const TRAILING = /[. ]+$/;

/**
 * What writing to the path comes to: `rules` where it goes into the prompt, or is a skill. Memory is
 * the person's notebook until words of others are in play.
 */
export function writeAccessOf(path: string, isTainted: boolean): ToolAccess {
  const names = namesOf(path);
  const name = names.at(-1) ?? '';
  if (RULE_NAMES.has(name) || CONTEXT_NAME.test(name)) return 'rules';
  const folders = isAbsolute(path) ? names : names.slice(0, 1);
  if (folders.includes(SKILLS_FOLDER)) return 'rules';
  return isTainted && folders.includes(MEMORY_FOLDER) ? 'rules' : 'write';
}

/** Files that the person's own rules stand in: no words of others. */
export function isRuleFile(path: string): boolean {
  return writeAccessOf(path, true) === 'rules';
}

function namesOf(path: string): readonly string[] {
  const names: string[] = [];
  for (const part of path.split(/[/\\]+/)) {
    const name = part
      .normalize('NFKC')
      .replace(IGNORABLE, '')
      .toLowerCase()
      .replace(TRAILING, '')
      .trim();
    if (part === '..') names.pop();
    else if (name !== '') names.push(name);
  }
  return names;
}

const isAbsolute = (path: string) => /^(?:[/\\]|[a-z]:)/i.test(path.trim());
