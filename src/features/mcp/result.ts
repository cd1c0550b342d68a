// Converts the result of a server's tool for the model: the texts in order, images where the model
// accepts them, everything else by name. All of it is bounded and untrusted.

import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { MediaStore } from '../../kernel/media/media.ts';
import { type AttachedMedia, isImage } from '../../kernel/message/attachment.ts';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { headOf, shortened } from '../../lib/text/cut.ts';

export type ReadResult = {
  readonly text: string;
  readonly isError: boolean;
  readonly images: readonly AttachedMedia[];
};

type Block = CallToolResult['content'][number];

/** The toolbox cuts to its own limit; this one bounds the memory before that. */
const MAX_TEXT_CHARS = 1_000_000;
const MAX_BLOCKS = 200;
const MAX_IMAGES = 4;
const MAX_IMAGE_BYTES = 5_000_000;
const MAX_NAME_CHARS = 300;
const BYTES_PER_BASE64_CHAR = 0.75;

/** @throws MediaError where an image cannot be stored */
export async function readResult(
  { content, structuredContent, isError }: CallToolResult,
  media: Pick<MediaStore, 'put'>,
): Promise<ReadResult> {
  const images: AttachedMedia[] = [];
  const parts: string[] = [];
  for (const block of content.slice(0, MAX_BLOCKS)) {
    const image = images.length < MAX_IMAGES ? await imageOf(block, media) : undefined;
    if (image === undefined) parts.push(textOf(block));
    else images.push(image);
  }
  if (content.length > MAX_BLOCKS) parts.push(`[${content.length - MAX_BLOCKS} more parts]`);
  if (images.length > 0) parts.push(`[images shown: ${images.length}]`);
  if (structuredContent !== undefined && parts.join('') === '') {
    parts.push(JSON.stringify(structuredContent));
  }
  const text = shortened(parts.join('\n'), MAX_TEXT_CHARS, '\n[the rest was cut]');
  return { text: text === '' ? '(no output)' : text, isError: isError === true, images };
}

function textOf(block: Block): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type}, ${plain(block.mimeType)}, ${sizeOf(block.data)} bytes: not shown]`;
    case 'resource':
      return 'text' in block.resource
        ? block.resource.text
        : `[file ${plain(block.resource.uri)}, ${sizeOf(block.resource.blob)} bytes: not shown]`;
    case 'resource_link':
      return `[link ${plain(block.uri)} ${plain(block.name)}]`;
  }
}

const plain = (text: string) => headOf(neutralLines(text).join(' '), MAX_NAME_CHARS);
const sizeOf = (base64: string) =>
  Math.floor(base64.length * BYTES_PER_BASE64_CHAR).toLocaleString('en-US');

/** Trusts the bytes of an image, not the type that the server declares. */
async function imageOf(
  block: Block,
  media: Pick<MediaStore, 'put'>,
): Promise<AttachedMedia | undefined> {
  if (block.type !== 'image') return undefined;
  if (block.data.length * BYTES_PER_BASE64_CHAR > MAX_IMAGE_BYTES) return undefined;
  const bytes = Buffer.from(block.data, 'base64');
  if (bytes.length === 0) return undefined;
  const { id, mimeType } = await media.put(bytes, { maxBytes: MAX_IMAGE_BYTES });
  const attached = { media: id, kind: 'image', mimeType } as const;
  return isImage(attached) ? attached : undefined;
}
