// Tool: replaces one exact passage of a text file. What counts as a match is core/exact-edit.ts.

import { z } from 'zod';
import { isOwnFile, writeAccessOf } from '../../agent/rules/rule-files.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { PATH_NAMES } from '../toolbox.ts';
import { decodeText } from './own-files.ts';
import {
  checkNotes,
  MAX_PATH_CHARS,
  MAX_WRITE_BYTES,
  type WorkspaceAccess,
} from './workspace-access.ts';
import { refuseOversized } from './write-file.ts';

const EDITED = 'Edited ';

const editInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  old_text: z.string().describe('The passage as it stands in the file, to the character.'),
  new_text: z.string().describe('What takes its place; empty deletes the passage.'),
});
type EditInput = z.infer<typeof editInput>;

export function createEditFile({ files, own }: WorkspaceAccess): Tool<EditInput> {
  return {
    name: 'edit_file',
    aliases: ['Edit', 'str_replace', 'replace', 'replace_in_file', 'string_replace', 'update_file'],
    parameterAliases: {
      path: PATH_NAMES,
      old_text: ['old_string', 'old_str', 'old', 'search'],
      new_text: ['new_string', 'new_str', 'new', 'replace', 'replacement'],
    },
    ...readDescription('edit_file'),
    access: 'write',
    accessOf: ({ path }, isTainted) => writeAccessOf(path, isTainted),
    // A refusal shows lines of the file.
    taints: true,
    isOwn: ({ path }, found) => isOwnFile(path) || found.startsWith(EDITED),
    isVerbatim: true,
    input: editInput,
    describe: ({ path }) => path,
    async run({ path, old_text, new_text }, context) {
      const { workspace } = context;
      checkNotes(path, context);
      let line = 0;
      let [before, after]: [Buffer | undefined, string] = [undefined, ''];
      const change = (content: Buffer | undefined) => {
        if (content === undefined) throw new ToolError('not_found', 'there is no such file');
        const edit = replaceExactly(decodeText(content), old_text, new_text);
        if (edit.kind === 'refused') throw new ToolError('invalid_arguments', edit.reason);
        refuseOversized(Buffer.byteLength(edit.text));
        line = edit.line;
        [before, after] = [content, edit.text];
        return edit.text;
      };
      await files.update(workspace, path, change, { maxBytes: MAX_WRITE_BYTES });
      const wasOwn = before !== undefined && (await own?.holds(before, context));
      if (wasOwn === true) await own?.wrote(path, after, context);
      return `${EDITED}${path} at line ${line}.`;
    },
  };
}

// Replacing one exact passage of a text. Anything but a single match is refused with the places, so
// that the next try can be right.

export type EditResult =
  | { readonly kind: 'edited'; readonly text: string; readonly line: number }
  | { readonly kind: 'refused'; readonly reason: string };

const MAX_PLACES_SHOWN = 10;
const MAX_EXCERPT_CHARS = 120;

export function replaceExactly(text: string, oldText: string, newText: string): EditResult {
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

/** Where the passage begins, overlapping places included; no more than are needed to show them. */
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

/** Points at lines that differ only in white space, the usual cause. */
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
      : `similar, but not the same to the character:\n${similar.join('\n')}`;
  return `old_text does not occur in the file; ${hint}`;
}

const squeeze = (line: string) => line.replace(/\s+/g, '');
const excerpt = (line: string) => headOf(line.trimEnd(), MAX_EXCERPT_CHARS);
