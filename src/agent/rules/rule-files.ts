// Which files of the workspace later turns are told to follow: writing there is more than writing.
// Decided from the path as a call names it, in doubt for the stricter.

import { HEARTBEAT_FILE } from '../../features/schedule/rules/job-report.ts';
import { PROFILES_FOLDER } from '../../features/subagents/rules/profile.ts';
import {
  CAPABILITIES_FOLDER,
  WORKFLOWS_FOLDER,
} from '../../features/workflows/rules/definition.ts';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { SKILLS_FOLDER, WORKSPACE_FILES } from './prompt.ts';

const MEMORY_FOLDER = 'memory';
/** Below memory: extracts of conversations. */
const EXTRACT_FOLDER = 'sessions';
/** Files of the prompt, and the one of which turns with an owner's rights come. */
const RULE_FILES: readonly string[] = [...WORKSPACE_FILES, HEARTBEAT_FILE];
/** Folders of files that say what is to be done. */
const RULE_FOLDERS: readonly string[] = [
  SKILLS_FOLDER,
  PROFILES_FOLDER,
  WORKFLOWS_FOLDER,
  CAPABILITIES_FOLDER,
];
/** By name, wherever they stand. */
const RULE_NAMES = new Set(RULE_FILES.map((name) => name.toLowerCase()));
const OWN_NAMES: ReadonlySet<string> = new Set(RULE_FILES);
const OWN_CONTEXT = /^CONTEXT(?:-[a-z0-9-]+)?\.md$/;
/** One that leads where it says, on every disk. */
const PLAIN_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_. -]*(?<![. ])$/;
const OWN_FOLDERS: ReadonlySet<string> = new Set([MEMORY_FOLDER, PEOPLE_FOLDER, GROUPS_FOLDER]);
const CONTEXT_NAME = /^context(?:-.*)?\.md$/;
/** Letters that a file system may take for others, or for none. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** Some file systems leave them out. */
const TRAILING = /[. ]+$/;

/**
 * What writing to the path comes to: `rules` where it goes into the prompt, is a skill, a
 * profile of helpers, a workflow with what it needs, or the heartbeat's. Memory is
 * the person's notebook until words of others are in play.
 */
export function writeAccessOf(path: string, isTainted: boolean): ToolAccess {
  const names = namesOf(path);
  const name = names.at(-1) ?? '';
  if (RULE_NAMES.has(name) || CONTEXT_NAME.test(name)) return 'rules';
  const folders = isAbsolute(path) ? names : names.slice(0, 1);
  if (RULE_FOLDERS.some((folder) => folders.includes(folder))) return 'rules';
  return isTainted && folders.includes(MEMORY_FOLDER) ? 'rules' : 'write';
}

/**
 * Files in which nothing stands that the owner did not write or say yes to: rules where the prompt
 * looks for them, skills, memory. A file of that name elsewhere came from anywhere, extracts of
 * conversations hold what others said, and a path that is not plain is in doubt.
 */
export function isOwnFile(path: string): boolean {
  const names = path.replace(/^\.\//, '').split('/');
  if (names.some((name) => !PLAIN_NAME.test(name))) return false;
  const [first = '', second = ''] = names;
  if (names.length === 1) return OWN_NAMES.has(first) || OWN_CONTEXT.test(first);
  if (RULE_FOLDERS.includes(first)) return true;
  return first === MEMORY_FOLDER && second.toLowerCase() !== EXTRACT_FOLDER;
}

const MEMORY_NAMES = /^(?:MEMORY\.md|learnings\.jsonl|sessions|backups|\d{4}-\d{2}-\d{2}\.md)$/;
const SESSION_NAMES = /^(?:SESSION_[0-9a-f]{8}\.md|MEMORY-\d{1,4}\.md)$/;

/** Whether the name of something in this folder is ours by the place it has; `folder` as its names. */
export function isOwnName(folder: readonly string[], name: string): boolean {
  const [first] = folder;
  if (first === undefined) {
    const isFolder = RULE_FOLDERS.includes(name) || OWN_FOLDERS.has(name);
    return isFolder || OWN_NAMES.has(name) || OWN_CONTEXT.test(name);
  }
  if (first !== MEMORY_FOLDER) return false;
  return (folder.length === 1 ? MEMORY_NAMES : SESSION_NAMES).test(name);
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
