// One answer as Lark messages: cards of its text, then its files, each followed by its caption, sent one
// by one with a durable mark after each, so that a failure in the middle repeats nothing.

import { createHash } from 'node:crypto';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { BACKOFF, DeliveryError } from '../../kernel/message/errors.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import type { Choice, OutboundMessage } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Run } from '../../lib/markup/writer.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { OpenCards } from './cards.ts';
import { type Card, cardJson, TEXT_UNITS } from './cards.ts';
import type { Doubts } from './doubts.ts';
import { isCardRefused, isGone, isNotThere, toDeliveryError } from './failures.ts';
import type { Messages, Target } from './messages.ts';
import { splitForLark } from './rules/markup.ts';
import type { Uploads } from './uploads.ts';

/** Lark takes five messages a second in a chat. */
const PARTS_AT_ONCE = 4;
const PART_PAUSE_MS = 250;
const REPEAT_MARK = '(sent again: the first try was not confirmed)\n\n';
const THREAD_MARK = '(the thread of this conversation is gone, so this stands outside of it)\n\n';

type Post =
  | { readonly kind: 'text'; readonly runs: readonly Run[]; readonly choices: readonly Choice[] }
  | { readonly kind: 'file'; readonly file: OutboundAttachment };

export type PartsDeps = {
  readonly messages: Messages;
  readonly uploads: Uploads;
  readonly openCards: OpenCards;
  readonly doubts: Doubts;
  readonly clock: Clock;
  readonly log: () => Logger;
};

/** @throws DeliveryError */
export async function sendParts(
  message: OutboundMessage,
  context: SendContext,
  target: Target,
  deps: PartsDeps,
): Promise<Receipt> {
  const sent: NativeId[] = [...context.sentParts];
  for (const [index, post] of postsOf(message).entries()) {
    if (index < context.sentParts.length) continue;
    if (index - context.sentParts.length >= PARTS_AT_ONCE) await pause(context.signal, deps.clock);
    await context.requestBegins();
    const id = await deps.doubts.during(message.id, index, context, (isRepeat) =>
      sendPost(post, { message, index, context, target, isRepeat }, deps),
    );
    await context.partSent(id);
    sent.push(id);
  }
  return { nativeIds: sent };
}

function postsOf({ markdown, attachments = [], choices = [] }: OutboundMessage): readonly Post[] {
  const text = (words: string): readonly Post[] =>
    splitForLark(words, TEXT_UNITS).map((runs) => ({ kind: 'text', runs, choices: [] }));
  const own = text(markdown);
  const last = own.at(-1);
  const words = last?.kind === 'text' ? [...own.slice(0, -1), { ...last, choices }] : own;
  const files = attachments.flatMap((file): readonly Post[] => [
    { kind: 'file', file },
    ...text(file.caption ?? ''),
  ]);
  return [...words, ...files];
}

type Place = {
  readonly message: OutboundMessage;
  readonly index: number;
  readonly context: SendContext;
  readonly target: Target;
  /** Nobody knows whether an earlier try arrived, and Lark would not see that it is the same. */
  readonly isRepeat: boolean;
};

/** @throws DeliveryError */
async function sendPost(post: Post, place: Place, deps: PartsDeps): Promise<NativeId> {
  const { context, index, message, target, isRepeat } = place;
  const { signal } = context;
  const to =
    index === 0 || target.chat.thread !== undefined ? target : { ...target, answering: undefined };
  const uuid = uuidOf(`${message.id}#${index}`);
  try {
    if (post.kind === 'file') {
      const body = await deps.uploads.upload(post.file, signal);
      return await deps.messages.create(to, body, uuid, signal);
    }
    const card = cardOf(post, target, '');
    const changed =
      index === 0 && context.draft !== undefined
        ? await rewrite(context.draft, card, signal, deps)
        : undefined;
    const anew = isRepeat ? cardOf(post, target, REPEAT_MARK) : card;
    const id = changed ?? (await sendCard(to, anew, uuid, signal, deps));
    if (post.choices.length > 0) await deps.openCards.keep(id, card);
    return id;
  } catch (error) {
    throw toDeliveryError(error, false);
  }
}

function cardOf({ runs, choices }: Post & { kind: 'text' }, { chat }: Target, mark: string): Card {
  return {
    runs: mark === '' ? runs : [{ text: mark, styles: [] }, ...runs],
    choices,
    ...(chat.thread === undefined ? {} : { thread: chat.thread }),
  };
}

/** Turns the draft into the final text; undefined when the draft is gone. */
async function rewrite(
  draft: NativeId,
  card: Card,
  signal: AbortSignal,
  deps: Pick<PartsDeps, 'messages' | 'log'>,
): Promise<NativeId | undefined> {
  try {
    await asCard(card, deps.log(), (json) => deps.messages.change(draft, json, signal));
    return draft;
  } catch (error) {
    if (isGone(error)) return undefined;
    // A change made twice leaves the same text.
    throw toDeliveryError(error, true);
  }
}

/** Where its thread is gone the text goes to the same chat outside of it and says so. */
export async function sendCard(
  target: Target,
  card: Card,
  uuid: string | undefined,
  signal: AbortSignal,
  { messages, log }: Pick<PartsDeps, 'messages' | 'log'>,
): Promise<NativeId> {
  const send = (to: Target, shown: Card) =>
    asCard(shown, log(), (content) =>
      messages.create(to, { msg_type: 'interactive', content }, uuid, signal),
    );
  const { thread, ...chat } = target.chat;
  const isOutside = thread !== undefined && target.answering === undefined;
  try {
    if (!isOutside) return await send(target, card);
  } catch (error) {
    if (thread === undefined || !isNotThere(error)) throw error;
  }
  const marked = { ...card, runs: [{ text: THREAD_MARK, styles: [] }, ...card.runs] };
  return send({ chat, answering: undefined }, marked);
}

/** Tries the marked-up card, and the plain text where Lark does not take the markup. */
export async function asCard<T>(
  card: Card,
  log: Logger,
  call: (json: string) => Promise<T>,
): Promise<T> {
  try {
    return await call(cardJson(card));
  } catch (error) {
    if (!isCardRefused(error)) throw error;
    log.warn('lark refused the formatting, sending plain text', { error });
  }
  return call(cardJson(card, true));
}

/** At most 50 characters (im-v1/message/create, `uuid`). */
export const uuidOf = (name: string) =>
  createHash('sha256').update(name).digest('hex').slice(0, 50);

async function pause(signal: AbortSignal, clock: Clock): Promise<void> {
  await clock.sleep(PART_PAUSE_MS, signal).catch(() => undefined);
  if (!signal.aborted) return;
  throw new DeliveryError('stopped between two parts', {
    certainty: 'not_sent',
    remedy: BACKOFF,
    code: 'lark_stopped',
  });
}
