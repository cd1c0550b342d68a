// Tool: reads on in a document, or looks again at an image, that came with a message of this
// conversation or is in the workspace. An id opens only what the conversation contains.

import { z } from 'zod';
import { documentPart, documentSize, documentText } from '../../agent/rules/document-text.ts';
import { fileNameOf, sentKindOf } from '../../kernel/delivery/undelivered.ts';
import {
  type DocumentReading,
  MediaError,
  type MediaReader,
  type MediaStore,
} from '../../kernel/media/media.ts';
import {
  type AttachedMedia,
  type AttachmentKind,
  attachedTitle,
  findAttached,
  isImage,
  type OutboundAttachment,
  sizeWords,
} from '../../kernel/message/attachment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { type AccountName, accountName } from '../../kernel/message/ids.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { parseLineRange } from '../../lib/text/cut.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { checkNotes, MAX_PATH_CHARS } from './file-tools.ts';
import type { Provenance } from './provenance.ts';

export type ReadDocumentDeps = {
  readonly files: GuardedFiles;
  readonly media: MediaStore;
  readonly reader: MediaReader;
  readonly own?: Provenance | undefined;
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
  from: z.int().min(0).optional().describe('Character to begin at; default 0.'),
});

/** Of a file in the workspace. */
const MAX_FILE_BYTES = 50_000_000;
/** Reserved for the line around a piece of text. */
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
      if (found !== undefined && context.isOwnMedia?.(found.media) === true) context.own?.();
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
  if (context.rights.trustsFiles && (await deps.own?.isOwn(path, content, context))) {
    context.own?.();
  }
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
  const there = listed === '' ? 'no files came with its messages' : `it has: ${listed}`;
  throw new ToolError(
    'not_found',
    `neither this conversation nor the workspace has a document with this name or id; ${there}`,
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

// Tool: sends files of the workspace to the current chat. The content is read through an open
// handle of the guarded folder and stored in the media store before the message is queued (case
// X09).

const MAX_FILES = 10;
const MAX_CAPTION_CHARS = 4000;
const MAX_NAME_CHARS = 200;

const fileInput = z.object({
  paths: z
    .array(z.string().min(1).max(MAX_PATH_CHARS))
    .min(1)
    .max(MAX_FILES)
    .describe('Files, relative to the workspace.'),
  caption: z
    .string()
    .trim()
    .max(MAX_CAPTION_CHARS)
    .optional()
    .describe('Text beside it, Markdown.'),
  name: z.string().max(MAX_NAME_CHARS).optional().describe('Another name for a single file.'),
  as: z
    .enum(['auto', 'document'])
    .default('auto')
    .describe('document: unchanged; chats shrink pictures otherwise.'),
});

export type SendFileDeps = {
  readonly files: GuardedFiles;
  readonly media: MediaStore;
  /** Undefined if the channel carries no files. */
  limit(account: AccountName): UploadLimit | undefined;
};

export type UploadLimit = {
  readonly eachBytes: number;
  /** Of all files of one call, if they are sent in one message. */
  readonly togetherBytes?: number;
};

export function createSendFile(deps: SendFileDeps) {
  return defineTool({
    name: 'send_file',
    aliases: ['send_files', 'upload_file', 'attach_file', 'send_document', 'send_photo'],
    parameterAliases: {
      paths: ['path', 'file_path', 'file', 'files'],
      caption: ['text', 'message'],
    },
    access: 'say',
    input: fileInput,
    describe: ({ paths }) => paths.join(', '),
    async run({ paths, caption, name, as }, context) {
      const limit = deps.limit(accountName(context.chat));
      const attachments: OutboundAttachment[] = [];
      for (const path of paths) {
        const kind = as === 'document' ? 'document' : undefined;
        const called = paths.length === 1 ? name : undefined;
        attachments.push(await takeFile({ path, name: called, kind }, context, deps, limit));
      }
      checkTogether(attachments, limit);
      const [first, ...rest] = attachments;
      if (first === undefined) throw new ToolError('invalid_arguments', 'name at least one file');
      const isSilent = caption === undefined || caption === '';
      await context.say('', [isSilent ? first : { ...first, caption }, ...rest]);
      const sent = attachments.map((file) => `${file.name} (${sizeWords(file.sizeBytes)})`);
      return `On its way to this chat: ${sent.join(', ')}.`;
    },
  });
}

/** @throws ToolError if one of them would not be sent */
export function checkTogether(
  files: readonly OutboundAttachment[],
  limit: UploadLimit | undefined,
): void {
  const together = limit?.togetherBytes ?? Number.POSITIVE_INFINITY;
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bytes <= together) return;
  throw new ToolError(
    'execution',
    `together they have ${bytes.toLocaleString('en-US')} bytes, and one message carries ` +
      `${together.toLocaleString('en-US')}: send them in several calls`,
  );
}

type Wanted = {
  readonly path: string;
  readonly name: string | undefined;
  readonly kind: AttachmentKind | undefined;
};

/** Copies a file of the workspace to the media store. @throws ToolError, GuardedFileError */
export async function takeFile(
  { path, name, kind }: Wanted,
  { workspace, person, rights }: Pick<ToolContext, 'workspace' | 'person' | 'rights'>,
  { files, media }: Pick<SendFileDeps, 'files' | 'media'>,
  limit: UploadLimit | undefined,
): Promise<OutboundAttachment> {
  if (rights.read !== 'free') {
    throw new ToolError('permission', 'this user may not see files of the workspace');
  }
  const maxBytes = limit?.eachBytes;
  if (maxBytes === undefined) throw new ToolError('blocked', 'no file can be sent there');
  checkNotes(path, { person });
  const content = await files.read(workspace, path, { maxBytes, onlyName: true });
  if (content.length === 0) throw new ToolError('execution', `"${path}" is empty`);
  const stored = await media.put(content, { maxBytes }).catch(explain);
  return {
    kind: kind ?? sentKindOf(stored.mimeType),
    media: stored.id,
    name: fileNameOf(name ?? path),
    mimeType: stored.mimeType,
    sizeBytes: stored.sizeBytes,
  };
}

function explain(error: unknown): never {
  if (!(error instanceof MediaError)) throw error;
  const reason =
    error.code === 'media_unavailable'
      ? 'the storage of files cannot be reached; try again later'
      : 'there is no storage space left for the file';
  throw new ToolError('execution', reason, { cause: error });
}
