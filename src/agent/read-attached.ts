// What came with a message, as the model gets it: images as they are, the beginning of a document's
// text as the words of others, and of everything that is not read a line that says so.

import type { DocumentReading } from '../kernel/media/media.ts';
import type { Attachment } from '../kernel/message/attachment.ts';
import {
  type AttachedMedia,
  attachmentTitle,
  isImage,
  shortIdOf,
} from '../kernel/message/attachment.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { newBoundary } from '../lib/boundary.ts';
import { headOf } from '../lib/text/cut.ts';
import { documentSize, documentText } from './rules/document-text.ts';
import type { TurnContext } from './turn-context.ts';

export type ReadAttached = {
  /** Stands below the words of the message; empty where there is nothing to say. */
  readonly text: string;
  readonly media: readonly AttachedMedia[];
};

type Document = { readonly attachment: Attachment; readonly attached: AttachedMedia };

/** More documents of one message are named only. */
const MAX_DOCUMENTS = 10;
/** Shares of `maxInlineChars` that all documents of one message have together. */
const MAX_INLINE_SHARES = 3;
const NO_SOUND: readonly Attachment['kind'][] = ['audio', 'voice', 'video', 'video_note'];
const SOUND_MIME = /^(?:audio|video)\//;

/** Never throws: what cannot be read costs its own text. */
export async function readAttached(
  turn: TurnContext,
  attachments: readonly Attachment[] = [],
): Promise<ReadAttached> {
  const stored = attachments.flatMap((attachment): readonly Document[] => {
    const { content, kind, name, mimeType = 'application/octet-stream' } = attachment;
    if (content.kind !== 'stored') return [];
    const named = name === undefined ? {} : { name };
    return [{ attachment, attached: { media: content.media, kind, mimeType, ...named } }];
  });
  // What is said in a sound stands among the words of its message.
  const documents = stored.filter(
    ({ attachment, attached }) => !isImage(attached) && attachment.spoken === undefined,
  );
  const readings = await Promise.all(
    documents.slice(0, MAX_DOCUMENTS).map((document) => readingOf(turn, document)),
  );
  let room = turn.settings.maxInlineChars * MAX_INLINE_SHARES;
  const texts = documents.map((document, index) => {
    const most = Math.min(turn.settings.maxInlineChars, room);
    const { text, shownChars } = worded(document, readings[index], most);
    room -= shownChars;
    return text;
  });
  return { text: texts.join('\n\n'), media: stored.map(({ attached }) => attached) };
}

async function readingOf(
  { reader, signal, log }: TurnContext,
  { attachment, attached }: Document,
): Promise<DocumentReading> {
  if (NO_SOUND.includes(attachment.kind) || SOUND_MIME.test(attached.mimeType)) {
    return { kind: 'unreadable', reason: 'sound and film are not read' };
  }
  try {
    return await reader.document(attached.media, signal);
  } catch (error) {
    if (signal.aborted) return { kind: 'unreadable', reason: 'reading it was stopped' };
    log.warn('document not read', { error });
    return { kind: 'unreadable', reason: 'it cannot be read at the moment' };
  }
}

function worded(
  { attachment, attached }: Document,
  reading: DocumentReading | undefined,
  mostChars: number,
): { readonly text: string; readonly shownChars: number } {
  const title = attachmentTitle(attachment);
  const id = shortIdOf(attached);
  if (reading === undefined) {
    return { text: `[${title}: not read yet; read_document reads it, id ${id}]`, shownChars: 0 };
  }
  if (reading.kind === 'unreadable') {
    return { text: `[${title} was not read: ${reading.reason}]`, shownChars: 0 };
  }
  const whole = documentText(reading.sections);
  const shown = headOf(whole, mostChars);
  const more = shown.length < whole.length || reading.isCut;
  const first = `the first ${shown.length.toLocaleString('en-US')} characters follow`;
  const how = more
    ? `${shown === '' ? 'not shown here' : first}, read_document reads on`
    : 'its text follows';
  const head = `[${title}, id ${id}: ${documentSize(reading)}; ${how}]`;
  if (shown === '') return { text: head, shownChars: 0 };
  const wrapped = wrapUntrusted(`text of document ${id}`, [{ text: shown }], newBoundary());
  return { text: `${head}\n${wrapped}`, shownChars: shown.length };
}
