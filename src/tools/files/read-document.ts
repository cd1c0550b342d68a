// Tool: reads on in a document, or looks again at an image, that came with a message of this
// conversation or lies in the workspace. An id opens nothing that the conversation does not hold.

import { z } from 'zod';
import { documentPart, documentSize, documentText } from '../../agent/rules/document-text.ts';
import type { DocumentReading, MediaReader, MediaStore } from '../../kernel/media/media.ts';
import {
  type AttachedMedia,
  attachedTitle,
  findAttached,
  isImage,
} from '../../kernel/message/attachment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { parseLineRange } from '../../lib/text/cut.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { checkNotes, MAX_PATH_CHARS } from './workspace-access.ts';

export type ReadDocumentDeps = {
  readonly files: GuardedFiles;
  readonly media: MediaStore;
  readonly reader: MediaReader;
  /** Longest result of a tool. */
  maxResultChars(): number;
};

const input = z.object({
  document: z
    .string()
    .min(1)
    .max(MAX_PATH_CHARS)
    .describe('Name or id of an attachment, or a path in the workspace.'),
  sections: z
    .string()
    .optional()
    .describe('Only these pages, sheets or slides, "a:b": 1-based, both included.'),
  from: z.int().min(0).optional().describe('Character to begin at; 0 when left out.'),
});

/** Of a file in the workspace. */
const MAX_FILE_BYTES = 50_000_000;
/** Left for our own line around a piece of text. */
const ROOM_CHARS = 300;
const MIN_CHARS = 500;
const MAX_CHARS = 40_000;
const MAX_LISTED = 20;

export function createReadDocument(deps: ReadDocumentDeps) {
  return defineTool({
    name: 'read_document',
    aliases: ['read_pdf', 'open_document', 'view_image', 'read_attachment'],
    parameterAliases: {
      document: ['path', 'file_path', 'file', 'name', 'id'],
      sections: ['pages'],
    },
    access: 'read',
    taints: true,
    input,
    describe: ({ document, sections }) =>
      sections === undefined ? document : `${document} ${sections}`,
    async run({ document, sections, from = 0 }, context) {
      const found = findAttached(context.attached ?? [], document);
      if (found !== undefined && isImage(found)) return look(deps, found, context);
      const reading =
        found === undefined
          ? await inWorkspace(deps, document, context)
          : await deps.reader.document(found.media, context.signal);
      return typeof reading === 'string' ? reading : pieceOf(reading, sections, from, deps);
    },
  });
}

async function inWorkspace(
  deps: ReadDocumentDeps,
  path: string,
  context: ToolContext,
): Promise<DocumentReading | string> {
  checkNotes(path, context);
  const content = await deps.files
    .read(context.workspace, path, { maxBytes: MAX_FILE_BYTES })
    .catch((error) => explainMissing(error, context));
  const { id, mimeType } = await deps.media.put(content, { maxBytes: MAX_FILE_BYTES });
  const name = path.split('/').at(-1) ?? path;
  const attached = { media: id, kind: 'image', mimeType, name } as const;
  if (isImage(attached)) return look(deps, attached, context);
  return deps.reader.document(id, context.signal);
}

function explainMissing(error: unknown, { attached = [] }: ToolContext): never {
  const isMissing = error instanceof GuardedFileError && error.reason === 'not_found';
  if (!isMissing) throw error;
  const listed = [...new Set(attached.slice(-MAX_LISTED).map(attachedTitle))].join('; ');
  const there = listed === '' ? 'nothing came with its messages' : `it has: ${listed}`;
  throw new ToolError(
    'not_found',
    `neither this conversation nor the workspace has a document of this name or id; ${there}`,
  );
}

async function look({ reader }: ReadDocumentDeps, image: AttachedMedia, context: ToolContext) {
  const reading = await reader.image(image.media);
  if (reading.kind === 'unreadable') {
    throw new ToolError('execution', `the image cannot be shown: ${reading.reason}`);
  }
  if (context.show === undefined) throw new ToolError('execution', 'no image can be shown here');
  context.show(image);
  return `${attachedTitle(image)}: shown with this result.`;
}

function pieceOf(
  reading: DocumentReading,
  wanted: string | undefined,
  from: number,
  { maxResultChars }: ReadDocumentDeps,
): string {
  if (reading.kind === 'unreadable') throw new ToolError('execution', reading.reason);
  const text = documentText(chosen(reading.sections, wanted));
  const maxChars = Math.min(MAX_CHARS, Math.max(MIN_CHARS, maxResultChars() - ROOM_CHARS));
  const part = documentPart(text, from, maxChars);
  const [start, end] = [Math.min(from, text.length), part.nextFrom ?? text.length].map((at) =>
    at.toLocaleString('en-US'),
  );
  const onward = part.nextFrom === undefined ? 'the end' : `read on with from: ${part.nextFrom}`;
  const of = `${part.totalChars.toLocaleString('en-US')}`;
  return `[${documentSize(reading)}; characters ${start} to ${end} of ${of}; ${onward}]\n${part.text}`;
}

function chosen<Section>(
  sections: readonly Section[],
  wanted: string | undefined,
): readonly Section[] {
  if (wanted === undefined || wanted.trim() === '') return sections;
  const range = parseLineRange(wanted);
  if (range === undefined) {
    throw new ToolError('invalid_arguments', 'sections must be "a:b", for example "3:5"');
  }
  if (range.first > sections.length) {
    const { length } = sections;
    throw new ToolError('invalid_arguments', `the document has only ${length} sections`);
  }
  return sections.slice(range.first - 1, range.last);
}
