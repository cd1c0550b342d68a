// Tool: reads a text file of the workspace, whole or a range of lines.

import { z } from 'zod';
import { isOwnFile } from '../../agent/rules/rule-files.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { linesOf, parseLineRange } from '../../lib/text/lines.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { PATH_NAMES } from '../toolbox.ts';
import { decodeText } from './own-files.ts';
import {
  checkNotes,
  MAX_PATH_CHARS,
  MAX_READ_BYTES,
  type WorkspaceAccess,
} from './workspace-access.ts';

const readInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  lines: z
    .string()
    .optional()
    .describe('Only these lines, "a:b": 1-based, both included. Example: "10:40".'),
});
type ReadInput = z.infer<typeof readInput>;

export function createReadFile({ files, own }: WorkspaceAccess): Tool<ReadInput> {
  return {
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
    ...readDescription('read_file'),
    access: 'read',
    // Where a file came from nobody knows any more.
    taints: true,
    isOwn: ({ path }) => isOwnFile(path),
    isVerbatim: true,
    input: readInput,
    describe: ({ path, lines }) => (lines === undefined ? path : `${path} ${lines}`),
    async run({ path, lines }, context) {
      const { workspace } = context;
      checkNotes(path, context);
      const content = await files.read(workspace, path, { maxBytes: MAX_READ_BYTES });
      if (isDocument(content)) throw new ToolError('execution', IS_DOCUMENT);
      if (await own?.holds(content, context)) context.own?.();
      const text = decodeText(content);
      if (lines !== undefined && lines.trim() !== '') return cutLines(text, lines);
      return text === '' ? '(the file is empty)' : text;
    },
  };
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
