// An answer with files as the posts it goes out in: its text, then its files, each with its caption.
// A post knows how many platform messages it makes, so that a retry goes on behind the last of them.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { albumsOf } from '../../kernel/delivery/outbound-files.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { splitMarkdown } from '../../lib/markup/split.ts';
import { telegramThreadId } from './ids.ts';
import { MESSAGE_UNITS, sendParts } from './parts.ts';
import {
  ALBUM_SIZE,
  albumGroupOf,
  type FilesDeps,
  isLongCaption,
  sendFiles,
} from './send-files.ts';

type Post =
  | { readonly kind: 'text'; readonly markdown: string; readonly messages: number }
  | {
      readonly kind: 'files';
      readonly files: readonly OutboundAttachment[];
      readonly messages: number;
    };

/** @throws DeliveryError */
export async function sendPosts(
  message: OutboundMessage,
  context: SendContext,
  replyTo: number | undefined,
  deps: FilesDeps,
): Promise<Receipt> {
  const { attachments = [], ...rest } = message;
  if (attachments.length === 0) return sendParts(message, context, replyTo, deps);
  const sent: NativeId[] = [];
  let repeatsUnknown = context.repeatsUnknown;
  for (const [index, post] of postsOf(rest.markdown, attachments).entries()) {
    const before = context.sentParts.slice(sent.length, sent.length + post.messages);
    const isSent = before.length === post.messages || (post.kind === 'files' && before.length > 0);
    if (isSent) {
      sent.push(...before, ...(await padded(before, post, context)));
      continue;
    }
    const target = index === 0 ? replyTo : undefined;
    // The last part of a text is not the last of the answer.
    const partSent = (id: NativeId) => context.partSent(id);
    // The draft becomes the text of the answer, never a caption.
    const { draft: _draft, ...rested } = context;
    const isAnswer = index === 0 && post.kind === 'text';
    const from = isAnswer ? context : rested;
    const own = { ...from, sentParts: before, repeatsUnknown, partSent };
    const ids = await sendPost(post, rest, own, target, deps);
    repeatsUnknown = false;
    sent.push(...ids);
  }
  return { nativeIds: sent };
}

/**
 * An album of which not all ids were recorded stands in the chat whole. Their places are taken by one
 * that was, so that what is behind it keeps its own in every later try.
 */
async function padded(
  before: readonly NativeId[],
  { messages }: Post,
  { partSent }: SendContext,
): Promise<readonly NativeId[]> {
  const missing = before
    .slice(-1)
    .flatMap((last) => Array.from({ length: messages - before.length }, () => last));
  for (const id of missing) await partSent(id);
  return missing;
}

async function sendPost(
  post: Post,
  message: OutboundMessage,
  context: SendContext,
  replyTo: number | undefined,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  if (post.kind === 'text') {
    const text = { ...message, markdown: post.markdown };
    return (await sendParts(text, context, replyTo, deps)).nativeIds;
  }
  const thread = telegramThreadId(message.chat);
  const place = { chat: deps.moves.address(message.chat), thread, replyTo };
  await context.requestBegins();
  const ids = await sendFiles(post.files, place, context, deps);
  for (const id of ids) await context.partSent(id);
  return ids;
}

function postsOf(markdown: string, attachments: readonly OutboundAttachment[]): readonly Post[] {
  const text = (words: string): readonly Post[] => {
    const messages = splitMarkdown(words, MESSAGE_UNITS).length;
    return messages === 0 ? [] : [{ kind: 'text', markdown: words, messages }];
  };
  const files = albumsOf(attachments, albumGroupOf, ALBUM_SIZE).flatMap(
    (album): readonly Post[] => {
      const captions = album.flatMap(({ caption }) =>
        isLongCaption(caption) ? [caption ?? ''] : [],
      );
      const post: Post = { kind: 'files', files: album, messages: album.length };
      return [post, ...captions.flatMap(text)];
    },
  );
  return [...text(markdown), ...files];
}
