// What makes a call out to the net a way to carry words away: an address that the model put together
// itself, long enough to hold something, at a host nobody in the conversation named.

import { HEARTBEAT_FILE } from '../../features/schedule/settings.ts';
import { PROFILES_FOLDER } from '../../features/subagents/settings.ts';
import { CAPABILITIES_FOLDER, WORKFLOWS_FOLDER } from '../../features/workflows/settings.ts';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import type { ToolCall, TranscriptEntry, UserEntry } from '../../kernel/message/transcript.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { SKILLS_FOLDER, WORKSPACE_FILES } from './prompt.ts';

/** What an address may hold beside its host before it is looked at, characters. */
const MAX_FREE_CHARS = 64;
/** What all shorter addresses of a conversation may hold together, characters. */
const MAX_FREE_CHARS_IN_SUM = 512;

export type KnownTexts = {
  /** What the person themself wrote. */
  readonly own: readonly string[];
  /** What the conversation was shown of others: who wrote an address there did not know our secrets. */
  readonly foreign: readonly string[];
};

/** What a model is shown, by who wrote it. */
export function knownTextsOf(view: readonly TranscriptEntry[]): KnownTexts {
  const shown = view.filter((entry) => entry.role === 'user' || entry.role === 'tool');
  const textsOf = (entries: typeof shown) => entries.map(({ text }) => text);
  return {
    own: textsOf(shown.filter(isTheirs)),
    foreign: textsOf(shown.filter(({ isForeign }) => isForeign === true)),
  };
}

/** Something untrusted in view. */
export type TaintSource = {
  readonly what: string;
  /** Epoch milliseconds; undefined for notes. */
  readonly at?: number;
};

const MARKED = /^\[(?:untrusted|words of others) [0-9a-f]{16}: ([^\n]*)\]$/m;

/** What taints a conversation, oldest first. `told`: what a call brought, in words. */
export function taintSources(
  view: readonly TranscriptEntry[],
  told: (call: ToolCall) => string,
): readonly TaintSource[] {
  const calls = new Map<string, ToolCall>();
  return view.flatMap((entry): readonly TaintSource[] => {
    if (entry.role === 'assistant') for (const call of entry.toolCalls) calls.set(call.id, call);
    if (!('isForeign' in entry)) return [];
    const { at } = entry;
    if (entry.role === 'summary') return [{ what: 'summary of earlier untrusted content', at }];
    if (entry.role === 'user') return [{ what: messageWords(entry), at }];
    const call = calls.get(entry.callId);
    return [{ what: call === undefined ? `result of ${entry.name}` : told(call), at }];
  });
}

function messageWords({ text, media }: UserEntry): string {
  const [, mark] = MARKED.exec(text) ?? [];
  if (mark === undefined) return media === undefined ? 'message' : 'attached file';
  const isMessage = /^(?:quoted|forwarded|sent) /.test(mark);
  return `${isMessage ? 'message ' : ''}${mark.replace('by the person', 'by you')}`;
}

/** A message of the person's; what a remark of ours repeats of an answer, they did not write. */
const isTheirs = (entry: TranscriptEntry) =>
  entry.role === 'user' && entry.seq !== undefined && entry.isForeign !== true;

/**
 * Whether asking for this address could tell its host something that it does not know, by itself or
 * together with the addresses that the conversation asked for `earlier`.
 */
export function carriesData(
  url: string,
  known: KnownTexts,
  earlier: readonly string[] = [],
): boolean {
  const chars = dataChars(url, known);
  if (chars === 0 || chars > MAX_FREE_CHARS) return chars > 0;
  const others = [...new Set(earlier)].filter((other) => other !== url);
  // A longer one was shown to an owner.
  const free = others
    .map((other) => dataChars(other, known))
    .filter((count) => count <= MAX_FREE_CHARS);
  return free.reduce((sum, count) => sum + count, chars) > MAX_FREE_CHARS_IN_SUM;
}

/** The characters that the model chose; 0 where the host was named or others wrote the address. */
function dataChars(url: string, { own, foreign }: KnownTexts): number {
  if (!URL.canParse(url)) return Number.POSITIVE_INFINITY;
  const { host, hostname, pathname, search, username, password } = new URL(url);
  // A name can be made of data as well; what belongs to everybody is the end of it.
  const labels = hostname.split('.').slice(0, -2).join('.');
  const data = [labels, username, password, pathname, search].join('');
  if (own.some((text) => names(text, host))) return 0;
  return foreign.some((text) => holdsWhole(text, url)) ? 0 : data.length;
}

/** As a whole name: "example.org" does not stand in "example.org.evil.test". */
function names(text: string, host: string): boolean {
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(host); at !== -1; at = lower.indexOf(host, at + 1)) {
    const before = lower[at - 1] ?? '';
    const behind = lower.slice(at + host.length, at + host.length + 2);
    if (!/[a-z0-9_-]/.test(before) && !/^(?:[a-z0-9_-]|[.:][a-z0-9_-])/.test(behind)) return true;
  }
  return false;
}

/** Not as the beginning of a longer address. */
function holdsWhole(text: string, url: string): boolean {
  for (let at = text.indexOf(url); at !== -1; at = text.indexOf(url, at + 1)) {
    const end = text[at + url.length] ?? ' ';
    if (/[\s"'<>)\]}|\\^`,;]/.test(end)) return true;
    if (/[.!?]/.test(end) && /^(?:\s|$)/.test(text.slice(at + url.length + 1))) return true;
  }
  return false;
}

// Which files of the workspace later turns are told to follow: writing there is more than writing.
// Decided from the path as a call names it, in doubt for the stricter.

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

/** Whether the path leads to extracts of conversations, which hold what others said; in doubt it does. */
export function leadsToExtracts(path: string): boolean {
  const names = namesOf(path);
  return names.some((name, at) => name === EXTRACT_FOLDER && names[at - 1] === MEMORY_FOLDER);
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
