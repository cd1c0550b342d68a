// One answer as Lark messages: cards of its text, then its files, each followed by its caption,
// with a durable mark after each, so that a failure in the middle repeats nothing. Live previews
// grow in one card that becomes the answer.

import { hash } from 'node:crypto';
import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import type { MessageId, NativeId } from '../../kernel/message/ids.ts';
import type { ChatRef, Choice, OutboundMessage } from '../../kernel/message/message.ts';
import { RecentMap } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { pauseBetweenParts, REPEAT_MARK } from '../api-calls.ts';
import type { Editing } from '../channel.ts';
import {
  type Card,
  cardJson,
  type Messages,
  type OpenCards,
  type Target,
  TEXT_UNITS,
} from './cards.ts';
import { isCardRefused, isGone, isNotThere, toDeliveryError, UNCLEAR_REFUSAL } from './failures.ts';
import { beginningForLark, splitForLark } from './rules/markup.ts';
import type { Uploads } from './uploads.ts';

/** Lark accepts five messages a second in a chat. */
const PARTS_AT_ONCE = 4;
const PART_PAUSE_MS = 250;
const THREAD_MARK = t`(the thread of this conversation is gone, so this is posted outside it)\n\n`;

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
  const posts = postsOf(message);
  for (const [index, post] of posts.entries()) {
    if (index < context.sentParts.length) continue;
    if (index - context.sentParts.length >= PARTS_AT_ONCE)
      await pauseBetweenParts(PART_PAUSE_MS, context.signal, deps.clock);
    await context.requestBegins();
    const id = await deps.doubts.during(message.id, index, context, (isRepeat) =>
      sendPost(post, { message, index, context, target, isRepeat }, deps),
    );
    await context.partSent(id, index === posts.length - 1);
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
  /** It is unknown whether an earlier try arrived, and Lark would not recognise the repeat. */
  readonly isRepeat: boolean;
};

/** @throws DeliveryError */
async function sendPost(post: Post, place: Place, deps: PartsDeps): Promise<NativeId> {
  const { context, index, message, target, isRepeat } = place;
  const { signal } = context;
  const to =
    index === 0 || target.chat.thread !== undefined ? target : { ...target, answering: [] };
  const uuid = uuidOf(`${message.id}#${index}`);
  try {
    if (post.kind === 'file') {
      const body = await deps.uploads.upload(post.file, signal);
      return await inThread(to, (there) => deps.messages.create(there, body, uuid, signal));
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
    thread: chat.thread,
  };
}

/** Turns the draft into the final text; undefined if the draft no longer exists. */
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
    // A repeated change leaves the same text.
    throw toDeliveryError(error, true);
  }
}

function sendCard(
  target: Target,
  card: Card,
  uuid: string | undefined,
  signal: AbortSignal,
  { messages, log }: Pick<PartsDeps, 'messages' | 'log'>,
): Promise<NativeId> {
  const marked = { ...card, runs: [{ text: THREAD_MARK, styles: [] }, ...card.runs] };
  return inThread(target, (to, isOutside) =>
    asCard(isOutside ? marked : card, log(), (content) =>
      messages.create(to, { msg_type: 'interactive', content }, uuid, signal),
    ),
  );
}

/** If its thread no longer exists, it goes to the same chat outside of it. */
async function inThread(
  target: Target,
  send: (to: Target, isOutside: boolean) => Promise<NativeId>,
): Promise<NativeId> {
  const { thread, ...chat } = target.chat;
  try {
    if (thread === undefined || target.answering.length > 0) return await send(target, false);
  } catch (error) {
    if (thread === undefined || !isNotThere(error)) throw error;
  }
  return send({ chat, answering: [] }, true);
}

/** Tries the card with markup, and plain text if Lark refuses the markup. */
async function asCard<T>(card: Card, log: Logger, call: (json: string) => Promise<T>): Promise<T> {
  try {
    return await call(cardJson(card));
  } catch (error) {
    if (!isCardRefused(error)) throw error;
    log.warn('lark refused the formatting, sending plain text', { error });
  }
  return call(cardJson(card, true));
}

/** At most 50 characters (im-v1/message/create, `uuid`). */
const uuidOf = (name: string) => hash('sha256', name).slice(0, 50);

// State of a part between its tries: since when its arrival is unknown, and how often Lark refused
// it with a code that may be temporary. Within the hour Lark recognises a repeat by its uuid and no
// note is needed; afterwards, and if the time is unknown after a crash, the repeat says that it may
// be one.

/** Lark keeps a uuid for an hour; the rest is a margin for differing clocks. */
const KNOWN_AGAIN_MS = 50 * 60_000;
const MAX_KNOWN = 1000;
/** Of one part, with codes that may be temporary: about a quarter of an hour with the waits. */
const MAX_UNCLEAR_TRIES = 20;

type Doubts = ReturnType<typeof createDoubts>;

type PartTries = { readonly since?: number; readonly unclear: number };

export function createDoubts(clock: Clock) {
  const tries = new RecentMap<string, PartTries>(MAX_KNOWN);

  return {
    /** `isRepeat`: the part may be in the chat already, and Lark may not recognise it. */
    async during<T>(
      id: MessageId,
      part: number,
      { repeatsUnknown, sentParts }: SendContext,
      send: (isRepeat: boolean) => Promise<T>,
    ): Promise<T> {
      const key = `${id}#${part}`;
      const before = tries.get(key) ?? { unclear: 0 };
      const isFresh = before.since !== undefined && clock.now() - before.since < KNOWN_AGAIN_MS;
      const isDoubtful = repeatsUnknown && part === sentParts.length;
      try {
        const result = await send(isDoubtful && !isFresh);
        tries.delete(key);
        return result;
      } catch (error) {
        if (!(error instanceof DeliveryError)) throw error;
        const { certainty, code, message } = error;
        const unclear = before.unclear + (code === UNCLEAR_REFUSAL ? 1 : 0);
        const since = before.since ?? (certainty === 'unknown' ? clock.now() : undefined);
        tries.set(key, { unclear, ...(since === undefined ? {} : { since }) });
        if (code !== UNCLEAR_REFUSAL || unclear < MAX_UNCLEAR_TRIES) throw error;
        throw new DeliveryError(message, { certainty, remedy: NEVER, code });
      }
    },
  };
}

// Live previews: an answer that grows in one card. A draft is best effort: an edit that Lark does
// not accept in time is skipped, never queued, so that the final text is not delayed.

/** Lark accepts five changes of one message a second, for all apps of a group together. */
const MIN_EDIT_INTERVAL_MS = 1000;
/** Source text beyond this does not fit in one card, whatever its markup. */
const MAX_SOURCE_CHARS = 4 * TEXT_UNITS;

export type DraftDeps = Pick<PartsDeps, 'messages' | 'log'> & {
  targetOf(chat: ChatRef, replyTo: MessageId | undefined): Promise<Target>;
};

export function createDrafts({ messages, log, targetOf }: DraftDeps): Editing {
  const beginning = (markdown: string) => ({
    runs: beginningForLark(markdown.slice(0, MAX_SOURCE_CHARS), TEXT_UNITS),
  });

  return {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,
    isFoundAgain: true,
    async place(chat, markdown, { replyTo, name, signal }) {
      try {
        const target = await targetOf(chat, replyTo);
        const uuid = name === undefined ? undefined : uuidOf(`${name}#draft`);
        return await sendCard(target, beginning(markdown), uuid, signal, { messages, log });
      } catch (error) {
        throw toDeliveryError(error, false);
      }
    },
    async edit(_chat, draft, markdown, signal) {
      const card = beginning(markdown);
      if (runsText(card.runs).trim() === '') return;
      try {
        await asCard(card, log(), (json) => messages.change(draft, json, signal));
      } catch (error) {
        if (isCardRefused(error)) return;
        throw toDeliveryError(error, true);
      }
    },
    async remove(_chat, draft, signal) {
      try {
        await messages.remove(draft, signal);
      } catch (error) {
        if (!isGone(error)) throw toDeliveryError(error, true);
      }
    },
  };
}
