// Tool: sends files of the workspace to the current chat. The content is read by an open handle of
// the guarded folder and kept in the media store before the message is queued (case X09).

import { z } from 'zod';
import { fileNameOf, sentKindOf } from '../../kernel/delivery/undelivered.ts';
import { MediaError, type MediaStore } from '../../kernel/media/media.ts';
import { type AccountName, accountName } from '../../kernel/message/account.ts';
import {
  type AttachmentKind,
  type OutboundAttachment,
  sizeWords,
} from '../../kernel/message/attachment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { checkNotes, MAX_PATH_CHARS } from './workspace-access.ts';

const MAX_FILES = 10;
const MAX_CAPTION_CHARS = 4000;
const MAX_NAME_CHARS = 200;

const input = z.object({
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
  name: z
    .string()
    .max(MAX_NAME_CHARS)
    .optional()
    .describe('How a single file is called there; its own name unless given.'),
  as: z
    .enum(['auto', 'document'])
    .default('auto')
    .describe('document: unchanged, also a picture, which a chat would make smaller.'),
});

export type SendFileDeps = {
  readonly files: GuardedFiles;
  readonly media: MediaStore;
  /** Undefined where the door carries no files. */
  limit(account: AccountName): UploadLimit | undefined;
};

export type UploadLimit = {
  readonly eachBytes: number;
  /** Of all files of one call, where they go out in one piece. */
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
    input,
    describe: ({ paths }) => paths.join(', '),
    async run({ paths, caption, name, as }, context) {
      const attachments: OutboundAttachment[] = [];
      for (const path of paths) {
        const kind = as === 'document' ? 'document' : undefined;
        const called = paths.length === 1 ? name : undefined;
        attachments.push(await taken({ path, name: called, kind }, context, deps));
      }
      checkTogether(attachments, context, deps);
      const [first, ...rest] = attachments;
      if (first === undefined) throw new ToolError('invalid_arguments', 'name a file');
      const isSilent = caption === undefined || caption === '';
      await context.say('', [isSilent ? first : { ...first, caption }, ...rest]);
      const sent = attachments.map((file) => `${file.name} (${sizeWords(file.sizeBytes)})`);
      return `On its way to this chat: ${sent.join(', ')}.`;
    },
  });
}

/** @throws ToolError where one of them would stay behind */
function checkTogether(
  files: readonly OutboundAttachment[],
  { chat }: ToolContext,
  { limit }: SendFileDeps,
): void {
  const together = limit(accountName(chat))?.togetherBytes ?? Number.POSITIVE_INFINITY;
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (bytes <= together) return;
  throw new ToolError(
    'execution',
    `together they have ${bytes.toLocaleString('en-US')} bytes, and one message here carries ` +
      `${together.toLocaleString('en-US')}: send them by several calls`,
  );
}

type Wanted = {
  readonly path: string;
  readonly name: string | undefined;
  readonly kind: AttachmentKind | undefined;
};

/** @throws ToolError, GuardedFileError */
async function taken(
  { path, name, kind }: Wanted,
  { chat, workspace, person, rights }: ToolContext,
  { files, media, limit: limitOf }: SendFileDeps,
): Promise<OutboundAttachment> {
  if (rights.read !== 'free') {
    throw new ToolError('permission', 'whoever asks may not see files of the workspace');
  }
  const limit = limitOf(accountName(chat))?.eachBytes;
  if (limit === undefined) throw new ToolError('blocked', 'no file can be sent to this chat');
  checkNotes(path, { person });
  const content = await files.read(workspace, path, { maxBytes: limit, onlyName: true });
  if (content.length === 0) throw new ToolError('execution', `"${path}" is empty`);
  const stored = await media.put(content, { maxBytes: limit }).catch(explain);
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
  throw new ToolError('execution', 'there is no room left for the file', { cause: error });
}
