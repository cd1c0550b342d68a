// Access of the file tools to the workspace, and the tools that list, read, write and edit its
// files.

import { z } from 'zod';
import { isOwnFile, writeAccessOf } from '../../agent/rules/taint.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { reachesOthers, verbatim } from '../../kernel/message/untrusted.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import type { GuardedEntry, GuardedFiles } from '../../lib/files/guarded-files.ts';
import { headOf, linesOf, nameOnLine, parseLineRange } from '../../lib/text/cut.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { PATH_NAMES } from '../toolbox.ts';
import type { Provenance } from './provenance.ts';

export type WorkspaceAccess = {
  readonly files: GuardedFiles;
  /** Absent: everything in the workspace counts as untrusted. */
  readonly own?: Provenance | undefined;
};

/** Largest file that is read, bytes. */
export const MAX_READ_BYTES = 10_000_000;
/** Largest file that is written, bytes. */
const MAX_WRITE_BYTES = 5_000_000;
export const MAX_PATH_CHARS = 4096;

/**
 * Call in every tool that takes a path. One person's turn does not reach another's notes.
 * @throws ToolError
 */
export function checkNotes(path: string, { person }: Pick<ToolContext, 'person'>): void {
  if (!reachesOthers(path, person.notes)) return;
  throw new ToolError('permission', `"${path}" is not accessible to this user`);
}

/** The folder that the path is relative to. @throws ToolError as `checkNotes` */
function workspaceFor(path: string, context: ToolContext): string {
  checkNotes(path, context);
  return context.workspace;
}

// Files as text: binary content is refused, because neither a model nor an exact edit can use it.

const NUL = 0;

/** @throws ToolError execution: binary or not UTF-8 */
export function decodeText(content: Uint8Array): string {
  if (content.includes(NUL)) {
    throw new ToolError('execution', 'this is a binary file; only text files can be used');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch (cause) {
    throw new ToolError('execution', 'the file is not UTF-8 text', { cause });
  }
}

// Tools for the workspace: list a folder, read, write and edit a text file. An edit needs exactly
// one
// match.

const MAX_ENTRIES = 500;

const listInput = z.object({
  path: z
    .string()
    .max(MAX_PATH_CHARS)
    .default('.')
    .describe('Folder, relative to the workspace; "." is the workspace itself.'),
});

export function createListDir({ files, own }: WorkspaceAccess) {
  return defineTool({
    name: 'list_dir',
    aliases: ['ls', 'LS', 'dir', 'list_files', 'list_directory', 'list_folder', 'tree'],
    parameterAliases: { path: PATH_NAMES },
    access: 'read',
    // An unpacked archive can contain untrusted file names.
    taints: true,
    isVerbatim: true,
    input: listInput,
    describe: ({ path }) => path,
    async run({ path }, context) {
      const workspace = workspaceFor(path, context);
      const listing = await files.list(workspace, path, { maxEntries: MAX_ENTRIES });
      const names = listing.entries.map(({ name }) => name);
      if (await own?.named(path, names, context)) context.own?.();
      const lines = listing.entries.map(describeEntry);
      if (lines.length === 0) lines.push('(the folder is empty)');
      if (listing.omitted > 0) lines.push(`[${listing.omitted} more entries not shown]`);
      if (listing.hidden > 0) lines.push(`[${listing.hidden} protected entries not shown]`);
      return lines.join('\n');
    },
  });
}

function describeEntry({ name: given, kind, bytes }: GuardedEntry): string {
  const name = nameOnLine(given);
  switch (kind) {
    case 'folder':
      return `folder  ${name}/`;
    case 'file':
      return `file    ${name}  (${bytes.toLocaleString('en-US')} bytes)`;
    case 'link':
      return `link    ${name}  (not followed)`;
    case 'other':
      return `other   ${name}`;
  }
}

// Tool: reads a text file of the workspace, whole or a range of lines.

const readInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  lines: z
    .string()
    .optional()
    .describe('Only these lines, "a:b": 1-based, both included. Example: "10:40".'),
});

export function createReadFile({ files, own }: WorkspaceAccess) {
  return defineTool({
    name: 'read_file',
    aliases: [
      'Read',
      'cat',
      'open',
      'open_file',
      'view',
      'view_file',
      'get_file',
      'read_text_file',
    ],
    parameterAliases: { path: PATH_NAMES, lines: ['line_range', 'range', 'view_range'] },
    access: 'read',
    // The origin of a file is no longer known.
    taints: true,
    isOwn: ({ path }) => isOwnFile(path),
    isVerbatim: true,
    input: readInput,
    describe: ({ path, lines }) => (lines === undefined ? path : `${path} ${lines}`),
    async run({ path, lines }, context) {
      const workspace = workspaceFor(path, context);
      const content = await files.read(workspace, path, { maxBytes: MAX_READ_BYTES });
      if (isDocument(content)) throw new ToolError('execution', IS_DOCUMENT);
      if (await own?.isOwn(path, content, context)) context.own?.();
      const text = decodeText(content);
      if (lines !== undefined && lines.trim() !== '') return cutLines(text, lines);
      return text === '' ? '(the file is empty)' : text;
    },
  });
}

const IS_DOCUMENT = 'this is a document or an image: read_document reads it, with the same path';
/** PDF, zip (which office files are), old Office, RTF, PNG, JPEG, GIF, WebP in RIFF. */
const DOCUMENT_STARTS = [
  ...['25504446', '504b0304', 'd0cf11e0', '7b5c727466'],
  ...['89504e47', 'ffd8ff', '47494638', '52494646'],
];

function isDocument(content: Uint8Array): boolean {
  const start = Buffer.from(content.subarray(0, 8)).toString('hex');
  return DOCUMENT_STARTS.some((mark) => start.startsWith(mark));
}

function cutLines(text: string, wanted: string): string {
  const range = parseLineRange(wanted);
  if (range === undefined) {
    throw new ToolError('invalid_arguments', 'lines must be "a:b", for example "10:40"');
  }
  const all = linesOf(text);
  if (range.first > all.length) {
    throw new ToolError('invalid_arguments', `the file has only ${all.length} lines`);
  }
  const last = Math.min(range.last, all.length);
  const shown = all.slice(range.first - 1, last).join('\n');
  return `[lines ${range.first} to ${last} of ${all.length}]\n${shown}`;
}

// Tool: writes a whole file of the workspace in one step.

const writeInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  content: z.string().describe('The whole new content.'),
});

export function createWriteFile({ files, own }: WorkspaceAccess) {
  return defineTool({
    name: 'write_file',
    aliases: ['Write', 'create_file', 'save_file', 'new_file'],
    parameterAliases: { path: PATH_NAMES, content: ['contents', 'text', 'file_text', 'body'] },
    access: 'write',
    accessOf: ({ path }, isTainted) => writeAccessOf(path, isTainted),
    requestOf: ({ path, content }) => ({
      sentence: changeSentence('Write', path),
      ...{ text: content, file: 'content.txt' },
    }),
    input: writeInput,
    describe: ({ path }) => path,
    async run({ path, content }, context) {
      const workspace = workspaceFor(path, context);
      const bytes = Buffer.byteLength(content);
      refuseOversized(bytes);
      await own?.writes(path, content, context);
      const result = await files.write(workspace, path, content);
      await own?.wrote(path, content, context);
      const verb = result === 'created' ? 'Created' : 'Replaced';
      return `${verb} ${path} (${bytes.toLocaleString('en-US')} bytes).`;
    },
  });
}

function changeSentence(verb: string, path: string): string {
  const name = verbatim(shownText(path));
  const isRule = writeAccessOf(path, false) === 'rules';
  return isRule ? `Change my instructions in ${name}?` : `${verb} ${name}?`;
}

const marked = (mark: string, text: string) =>
  text === '' ? [] : text.split('\n').map((line) => mark + line);

/** @throws ToolError invalid_arguments */
function refuseOversized(bytes: number): void {
  if (bytes <= MAX_WRITE_BYTES) return;
  const limit = MAX_WRITE_BYTES.toLocaleString('en-US');
  throw new ToolError('invalid_arguments', `the content is too large; the limit is ${limit} bytes`);
}

// Tool: replaces one exact passage of a text file.

const EDITED = 'Edited ';

const editInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  old_text: z.string().describe('The exact passage of the file.'),
  new_text: z.string().describe('Its replacement; empty deletes the passage.'),
});

export function createEditFile({ files, own }: WorkspaceAccess) {
  return defineTool({
    name: 'edit_file',
    aliases: ['Edit', 'str_replace', 'replace', 'replace_in_file', 'string_replace', 'update_file'],
    parameterAliases: {
      path: PATH_NAMES,
      old_text: ['old_string', 'old_str', 'old', 'search'],
      new_text: ['new_string', 'new_str', 'new', 'replace', 'replacement'],
    },
    access: 'write',
    accessOf: ({ path }, isTainted) => writeAccessOf(path, isTainted),
    // A refusal shows lines of the file.
    taints: true,
    isOwn: ({ path }, found) => isOwnFile(path) || found.startsWith(EDITED),
    isVerbatim: true,
    requestOf: ({ path, old_text, new_text }) => ({
      sentence: changeSentence('Change', path),
      text: [...marked('- ', old_text), ...marked('+ ', new_text)].join('\n'),
      file: 'change.txt',
    }),
    input: editInput,
    describe: ({ path }) => path,
    async run({ path, old_text, new_text }, context) {
      const workspace = workspaceFor(path, context);
      let line = 0;
      let [before, after]: [Buffer | undefined, string] = [undefined, ''];
      const change = async (content: Buffer | undefined) => {
        if (content === undefined) throw new ToolError('not_found', 'there is no such file');
        // A refusal shows lines of it.
        if (await own?.isOwn(path, content, context)) context.own?.();
        const wasUntrusted = (await own?.isUntrusted(content)) === true;
        const edit = replaceExactly(decodeText(content), old_text, new_text);
        if (edit.kind === 'refused') throw new ToolError('invalid_arguments', edit.reason);
        refuseOversized(Buffer.byteLength(edit.text));
        line = edit.line;
        [before, after] = [content, edit.text];
        await own?.writes(path, edit.text, context, wasUntrusted);
        return edit.text;
      };
      await files.update(workspace, path, change, { maxBytes: MAX_WRITE_BYTES });
      const wasOwn = before !== undefined && (await own?.isOwn(path, before, context));
      if (wasOwn === true) await own?.wrote(path, after, context);
      return `${EDITED}${path} at line ${line}.`;
    },
  });
}

// Replaces one exact passage of a text. Anything but a single match is refused with the places, so
// that the next try can succeed.

type EditResult =
  | { readonly kind: 'edited'; readonly text: string; readonly line: number }
  | { readonly kind: 'refused'; readonly reason: string };

const MAX_PLACES_SHOWN = 10;
const MAX_EXCERPT_CHARS = 120;

function replaceExactly(text: string, oldText: string, newText: string): EditResult {
  if (oldText === '') return refuse('old_text is empty; write_file replaces a whole file');
  const usesCrlf = text.includes('\r\n') && !oldText.includes('\r\n');
  const wanted = usesCrlf ? toCrlf(oldText) : oldText;
  const replacement = usesCrlf ? toCrlf(newText) : newText;
  if (wanted === replacement) return refuse('old_text and new_text are the same');
  const places = placesOf(text, wanted);
  const [place] = places;
  if (place === undefined) return refuse(describeAbsence(text, oldText));
  if (places.length > 1) return refuse(describePlaces(text, places));
  return {
    kind: 'edited',
    text: text.slice(0, place) + replacement + text.slice(place + wanted.length),
    line: lineAt(text, place),
  };
}

const refuse = (reason: string): EditResult => ({ kind: 'refused', reason });
const toCrlf = (text: string) => text.replace(/\r?\n/g, '\r\n');

/**
 * Start positions of the passage, including overlapping ones; no more than are needed to show them.
 */
function placesOf(text: string, wanted: string): readonly number[] {
  const places: number[] = [];
  let at = text.indexOf(wanted);
  while (at >= 0 && places.length <= MAX_PLACES_SHOWN) {
    places.push(at);
    at = text.indexOf(wanted, at + 1);
  }
  return places;
}

function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) {
    line += 1;
  }
  return line;
}

function describePlaces(text: string, places: readonly number[]): string {
  const lines = text.split('\n');
  const shown = places.slice(0, MAX_PLACES_SHOWN).map((place) => {
    const line = lineAt(text, place);
    return `line ${line}: ${excerpt(lines[line - 1] ?? '')}`;
  });
  const isCut = places.length > shown.length;
  const times = isCut ? `more than ${MAX_PLACES_SHOWN} times` : `${places.length} times`;
  const advice = `old_text occurs ${times}; add lines around it until it is unique:`;
  return [advice, ...shown, ...(isCut ? ['[more places not shown]'] : [])].join('\n');
}

/** Points out lines that differ only in white space, the usual cause. */
function describeAbsence(text: string, oldText: string): string {
  const wanted = squeeze(oldText.split('\n').find((line) => line.trim() !== '') ?? '');
  const similar = text
    .split('\n')
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => wanted !== '' && squeeze(line).includes(wanted))
    .slice(0, MAX_PLACES_SHOWN)
    .map(({ line, number }) => `line ${number}: ${excerpt(line)}`);
  const hint =
    similar.length === 0
      ? 'read the file again and copy the passage exactly'
      : `similar, but not identical:\n${similar.join('\n')}`;
  return `old_text does not occur in the file; ${hint}`;
}

const squeeze = (line: string) => line.replace(/\s+/g, '');
const excerpt = (line: string) => headOf(line.trimEnd(), MAX_EXCERPT_CHARS);
