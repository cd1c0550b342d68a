// Decides whether a network request could leak data: its address was composed by the model, is long
// enough to carry data, and goes to a host that the conversation did not name.

import { HEARTBEAT_FILE } from '../../features/schedule/settings.ts';
import { PROFILES_FOLDER } from '../../features/subagents/settings.ts';
import { CAPABILITIES_FOLDER, WORKFLOWS_FOLDER } from '../../features/workflows/settings.ts';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import type { ToolCall, TranscriptEntry, UserEntry } from '../../kernel/message/transcript.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { t } from '../../lib/texts.ts';
import { SKILLS_FOLDER, WORKSPACE_FILES } from './prompt.ts';

/** Characters beside the host that an address may have without being checked. */
const MAX_FREE_CHARS = 64;
/** Total of these for all shorter addresses of a conversation. */
const MAX_FREE_CHARS_IN_SUM = 512;

export type KnownTexts = {
  /** Texts that the person wrote. */
  readonly own: readonly string[];
  /**
   * Untrusted content that the conversation saw: its authors did not know the conversation's
   * secrets.
   */
  readonly foreign: readonly string[];
};

/** What a model is shown, by author. */
export function knownTextsOf(view: readonly TranscriptEntry[]): KnownTexts {
  const shown = view.filter((entry) => entry.role === 'user' || entry.role === 'tool');
  const textsOf = (entries: typeof shown) => entries.map(({ text }) => text);
  return {
    own: textsOf(shown.filter(isTheirs)),
    foreign: textsOf(shown.filter(({ isForeign }) => isForeign === true)),
  };
}

/** Untrusted content in view. */
export type TaintSource = {
  readonly what: string;
  /** Epoch milliseconds; undefined for notes. */
  readonly at?: number;
};

const MARKED = /^\[(?:untrusted|words of others) [0-9a-f]{16}: ([^\n]*)\]$/m;

/** What taints a conversation, oldest first. `told`: describes for people what a call returned. */
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
  if (mark === undefined) return media === undefined ? 'message' : t`attached file`;
  const isMessage = /^(?:quoted|forwarded|sent) /.test(mark);
  return `${isMessage ? 'message ' : ''}${mark.replace(t`by the person`, t`by you`)}`;
}

/**
 * A message of the person. A remark of the gateway may quote an answer, which the person did not
 * write.
 */
const isTheirs = (entry: TranscriptEntry) =>
  entry.role === 'user' && entry.seq !== undefined && entry.isForeign !== true;

/**
 * Whether requesting this address could tell its host something new, alone or together with the
 * addresses that the conversation requested `earlier`.
 */
export function carriesData(
  url: string,
  known: KnownTexts,
  earlier: readonly string[] = [],
): boolean {
  const chars = dataChars(url, known);
  if (chars === 0 || chars > MAX_FREE_CHARS) return chars > 0;
  const others = [...new Set(earlier)].filter((other) => other !== url);
  // A longer one was approved by an owner.
  const free = others
    .map((other) => dataChars(other, known))
    .filter((count) => count <= MAX_FREE_CHARS);
  return free.reduce((sum, count) => sum + count, chars) > MAX_FREE_CHARS_IN_SUM;
}

/**
 * The characters that the model chose; 0 where the host was named or untrusted content contains the
 * address.
 */
function dataChars(url: string, { own, foreign }: KnownTexts): number {
  if (!URL.canParse(url)) return Number.POSITIVE_INFINITY;
  const { host, hostname, pathname, search, username, password } = new URL(url);
  // Labels of the host name may carry data too; only its registered end does not.
  const labels = hostname.split('.').slice(0, -2).join('.');
  const data = [labels, username, password, pathname, search].join('');
  if (own.some((text) => names(text, host))) return 0;
  return foreign.some((text) => holdsWhole(text, url)) ? 0 : data.length;
}

/** As a whole name: "example.org" is not in "example.org.evil.test". */
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

// The files of the workspace that later turns follow as instructions: writing them needs the right
// `rules`. Decided by the path of the call; in doubt the stricter right.

const MEMORY_FOLDER = 'memory';
/** Below memory: extracts of conversations. */
const EXTRACT_FOLDER = 'sessions';
/** Files of the prompt, and the file that starts turns with an owner's rights. */
const RULE_FILES: readonly string[] = [...WORKSPACE_FILES, HEARTBEAT_FILE];
/** Folders of files that contain instructions. */
const RULE_FOLDERS: readonly string[] = [
  SKILLS_FOLDER,
  PROFILES_FOLDER,
  WORKFLOWS_FOLDER,
  CAPABILITIES_FOLDER,
];
/** By name, in any folder. */
const RULE_NAMES = new Set(RULE_FILES.map((name) => name.toLowerCase()));
const OWN_NAMES: ReadonlySet<string> = new Set(RULE_FILES);
const OWN_CONTEXT = /^CONTEXT(?:-[a-z0-9-]+)?\.md$/;
/** A name with the same meaning on every file system. */
const PLAIN_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_. -]*(?<![. ])$/;
const OWN_FOLDERS: ReadonlySet<string> = new Set([MEMORY_FOLDER, PEOPLE_FOLDER, GROUPS_FOLDER]);
const CONTEXT_NAME = /^context(?:-.*)?\.md$/;
/** Characters that a file system may ignore or map to others. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** Some file systems remove them. */
const TRAILING = /[. ]+$/;

/**
 * The right that writing to the path needs: `rules` for the prompt, skills, profiles of subagents,
 * workflows with their parts, and the heartbeat. Memory is free until the conversation is tainted.
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
 * Files that contain only what an owner wrote or approved: rules where the prompt looks for them,
 * skills, memory. A file of such a name elsewhere may come from anywhere, extracts of conversations
 * contain untrusted content, and a path that is not plain is in doubt.
 */
export function isOwnFile(path: string): boolean {
  const names = path.replace(/^\.\//, '').split('/');
  if (names.some((name) => !PLAIN_NAME.test(name))) return false;
  const [first = '', second = ''] = names;
  if (names.length === 1) return OWN_NAMES.has(first) || OWN_CONTEXT.test(first);
  if (RULE_FOLDERS.includes(first)) return true;
  return first === MEMORY_FOLDER && second.toLowerCase() !== EXTRACT_FOLDER;
}

/**
 * Whether the path leads to extracts of conversations, which contain untrusted content; in doubt
 * true.
 */
export function leadsToExtracts(path: string): boolean {
  const names = namesOf(path);
  return names.some((name, at) => name === EXTRACT_FOLDER && names[at - 1] === MEMORY_FOLDER);
}

const MEMORY_NAMES = /^(?:MEMORY\.md|learnings\.jsonl|sessions|backups|\d{4}-\d{2}-\d{2}\.md)$/;
const SESSION_NAMES = /^(?:SESSION_[0-9a-f]{8}\.md|MEMORY-\d{1,4}\.md)$/;

/** Whether a name in this folder is trusted by its place; `folder`: its path as names. */
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
