// Tool: finds files of the workspace by name or content; links and protected files are left out.

import { posix } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { reachesOthers } from '../../kernel/message/untrusted.ts';
import { createLanes, type Lanes } from '../../lib/async.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import type { LinearPattern } from '../../lib/linear-pattern.ts';
import { headOf, nameOnLine } from '../../lib/text/cut.ts';
import { checkNotes, MAX_PATH_CHARS, type WorkspaceAccess } from '../files/file-tools.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { PATH_NAMES, QUERY_NAMES } from '../toolbox.ts';

export type FoundFile = {
  /** Relative to the workspace. */
  readonly path: string;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
};

const MAX_FILES = 10_000;
const MAX_DEPTH = 20;
const MAX_ENTRIES = 2000;
/** Created by programs, not by people. */
const SKIPPED = new Set(['node_modules', '.git', '__pycache__', '.venv']);

/** By path. `isWhole`: no limit cut the list. @throws GuardedFileError */
export async function workspaceFiles(
  guarded: GuardedFiles,
  workspace: string,
  start: string,
  signal: AbortSignal,
): Promise<{ readonly files: readonly FoundFile[]; readonly isWhole: boolean }> {
  const files: FoundFile[] = [];
  let isWhole = true;
  const walk = async (folder: string, depth: number): Promise<void> => {
    signal.throwIfAborted();
    const listing = await guarded.list(workspace, folder, { maxEntries: MAX_ENTRIES });
    if (listing.omitted > 0) isWhole = false;
    for (const { name, kind, bytes, modifiedAt } of listing.entries) {
      if (files.length >= MAX_FILES || depth > MAX_DEPTH) {
        isWhole = false;
        return;
      }
      const path = folder === '.' ? name : `${folder}/${name}`;
      if (kind === 'file') files.push({ path, bytes, modifiedAt });
      if (kind === 'folder' && !SKIPPED.has(name)) await walk(path, depth + 1).catch(ifGone);
    }
  };
  await walk(start.replace(/^\.\/+/, '').replace(/\/+$/, '') || '.', 1);
  return { files, isWhole };
}

/** Ignores files that are removed or unreadable, so that the rest is read. */
function ifGone(error: unknown): void {
  if (!(error instanceof GuardedFileError)) throw error;
}

const MAX_QUERY_CHARS = 500;
const MAX_GLOB_CHARS = 200;
const MAX_FILE_BYTES = 1_000_000;
/** Read from all files together. */
const MAX_READ_BYTES = 50_000_000;
/** Opened in parallel. */
const READ_AT_ONCE = 8;
/** Searched without a pause: some 4 ms for a regular expression. */
const SLICE_CHARS = 100_000;
const MAX_HITS = 200;
const DEFAULT_HITS = 50;
const MAX_LINE_CHARS = 300;

const input = z.object({
  query: z
    .string()
    .max(MAX_QUERY_CHARS)
    .default('')
    .describe('Words in one line, in any order and case; empty: by name only.'),
  name: z
    .string()
    .max(MAX_GLOB_CHARS)
    .optional()
    .describe(
      'Only files of this name or path, with * and ?. Examples: "*.md", "notes/**/2026-*".',
    ),
  path: z.string().max(MAX_PATH_CHARS).default('.').describe('Only below this folder.'),
  regex: z.boolean().default(false).describe('The query is a regular expression (RE2 syntax).'),
  count: z.int().min(1).max(MAX_HITS).default(DEFAULT_HITS).describe('Maximum number of hits.'),
});
type Input = z.infer<typeof input>;

export function createSearchFiles(access: WorkspaceAccess) {
  const lanes = createLanes();
  return defineTool({
    name: 'search_files',
    aliases: ['Grep', 'grep', 'Glob', 'glob', 'find', 'rg', 'find_files', 'file_search'],
    parameterAliases: {
      query: ['pattern', ...QUERY_NAMES],
      name: ['glob', 'include', 'filename', 'file_pattern'],
      path: PATH_NAMES.filter((name) => name !== 'filename'),
      count: ['limit', 'max_results'],
    },
    access: 'read',
    taints: true,
    isVerbatim: true,
    input,
    describe: ({ query, name }) => [query, name].filter((part) => part !== '').join(' in '),
    async run(asked, context) {
      const { query, name, path } = asked;
      if (query.trim() === '' && name === undefined) {
        throw new ToolError('invalid_arguments', 'give a query, a name, or both');
      }
      checkNotes(path, context);
      const pattern = query.trim() === '' ? undefined : await patternOf(asked);
      return createFileSearch({ access, lanes }, context, asked).run(pattern);
    },
  });
}

/** `mayOccurIn`: false if no line of the text matches. */
type TextPattern = LinearPattern & { mayOccurIn?(text: string): boolean };

async function patternOf({ query, regex }: Input): Promise<TextPattern> {
  if (!regex) {
    const words = query
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== '');
    const has = (text: string) => {
      const lowerCase = text.toLowerCase();
      return words.every((word) => lowerCase.includes(word));
    };
    return { test: has, mayOccurIn: has };
  }
  const { linearPattern, PatternError } = await import('../../lib/linear-pattern.ts');
  try {
    return await linearPattern(query);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new ToolError('invalid_arguments', error.message, { cause: error });
  }
}

type SearchDeps = {
  readonly access: WorkspaceAccess;
  /** Texts are searched for one call after the other, so that the pauses between slices are short. */
  readonly lanes: Lanes;
};

function createFileSearch({ access, lanes }: SearchDeps, context: ToolContext, asked: Input) {
  const hits: string[] = [];
  let readBytes = 0;
  let unread = 0;
  let isOwn = access.own !== undefined && context.rights.trustsFiles === true;

  async function run(pattern: TextPattern | undefined): Promise<string> {
    const { workspace, person, signal } = context;
    const { count } = asked;
    const found = await workspaceFiles(access.files, workspace, asked.path, signal);
    const named = found.files.filter(
      ({ path }) => !reachesOthers(path, person.notes) && isNamed(path),
    );
    if (pattern === undefined) {
      for (const { path } of named.slice(0, count)) {
        hits.push(nameOnLine(path));
        await nameShown(path);
      }
    } else await lanes.run('texts', () => searchAll(named, pattern));
    if (isOwn) context.own?.();
    return text(found.isWhole);
  }

  /** A pattern without a folder matches files of that name everywhere. */
  function isNamed(path: string): boolean {
    const { name } = asked;
    if (name === undefined) return true;
    const glob = name.replace(/^\.\//, '');
    return posix.matchesGlob(glob.includes('/') ? path : posix.basename(path), glob);
  }

  /** Reads several files at a time and searches their lines in order. */
  async function searchAll(files: readonly FoundFile[], pattern: TextPattern): Promise<void> {
    const readable = files.filter(({ bytes }) => hasRoom(bytes));
    for (let at = 0; at < readable.length; at += READ_AT_ONCE) {
      context.signal.throwIfAborted();
      const some = readable.slice(at, at + READ_AT_ONCE);
      const texts = await Promise.all(some.map(({ path }) => read(path)));
      for (const [index, { path }] of some.entries()) {
        const before = hits.length;
        await searchIn(path, texts[index] ?? '', pattern);
        if (hits.length > before) await textShown(path, texts[index] ?? '');
        if (hits.length >= asked.count) return;
      }
    }
  }

  async function nameShown(path: string): Promise<void> {
    const { dir, base } = posix.parse(path);
    isOwn &&= (await access.own?.named(dir === '' ? '.' : dir, [base], context)) === true;
  }

  async function textShown(path: string, text: string): Promise<void> {
    await nameShown(path);
    isOwn &&= (await access.own?.isOwn(path, text, context)) === true;
  }

  function hasRoom(bytes: number): boolean {
    const fits = bytes <= MAX_FILE_BYTES && readBytes + bytes <= MAX_READ_BYTES;
    if (fits) readBytes += bytes;
    else unread += 1;
    return fits;
  }

  /** With pauses, in which everything else that waits gets its turn. */
  async function searchIn(path: string, text: string, pattern: TextPattern): Promise<void> {
    await nextTurn();
    const lines = pattern.mayOccurIn?.(text) === false ? [] : text.split('\n');
    let unpaused = 0;
    for (let at = 0; at < lines.length && hits.length < asked.count; at += 1) {
      const line = lines[at] ?? '';
      if (pattern.test(line)) {
        hits.push(`${nameOnLine(path)}:${at + 1}: ${headOf(line.trim(), MAX_LINE_CHARS)}`);
      }
      unpaused += line.length;
      if (unpaused < SLICE_CHARS) continue;
      await nextTurn();
      unpaused = 0;
    }
  }

  /** Undefined for files that are not text or no longer exist. */
  async function read(path: string): Promise<string | undefined> {
    try {
      const { workspace } = context;
      const content = await access.files.read(workspace, path, { maxBytes: MAX_FILE_BYTES });
      return content.includes(0) ? undefined : content.toString('utf8');
    } catch (error) {
      if (error instanceof GuardedFileError) return undefined;
      throw error;
    }
  }

  function text(isWhole: boolean): string {
    const notes = [
      ...(hits.length >= asked.count ? ['[there may be more: narrow it down]'] : []),
      ...(unread > 0 ? [`[${unread} large files were not searched]`] : []),
      ...(isWhole ? [] : ['[the folder holds too many files: not all were searched]']),
    ];
    return [...(hits.length === 0 ? ['Nothing was found.'] : hits), ...notes].join('\n');
  }

  return { run };
}
