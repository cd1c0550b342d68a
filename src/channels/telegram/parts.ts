// One text as a Telegram message: rendered, sent to the current id of its chat, or put in place of
// a draft. Also retracts sent messages and removes their buttons.

import type { SendContext } from '../../kernel/bus/bus.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { RecentMap } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { plainText } from '../../lib/markup/markup.ts';
import { splitMarkdown } from '../../lib/markup/split.ts';
import {
  escapeHtml,
  type Run,
  runsText,
  type Style,
  sharedStyles,
} from '../../lib/markup/writer.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { eachPart } from '../api-calls.ts';
import type { Channel } from '../channel.ts';
import { draftMessages, fromNativeId, type GroupMoves, toNativeId } from './chats.ts';
import type { Keyboard } from './choices.ts';
import type { BotApi, BotLink, Sending } from './client.ts';
import {
  isFormattingRefused,
  isGone,
  isNotThere,
  isTopicGone,
  isUnchanged,
  migratedTo,
  toDeliveryError,
} from './client.ts';

/** Longest visible text of one message, UTF-16 units (Bot API, sendMessage). */
export const MESSAGE_UNITS = 4096;
/** Telegram permits about one message a second in a chat. */
export const PART_PAUSE_MS = 1000;
const TOPIC_MARK = t`(the topic of this conversation is gone, so this is posted outside it)\n\n`;

type ShownTexts = ReturnType<typeof createShownTexts>;

const MAX_SHOWN = 500;

/** What drafts show, as far as known: a message is not changed to the same text. */
export function createShownTexts() {
  const texts = new RecentMap<string, string>(MAX_SHOWN);
  const keyOf = (chat: number, message: NativeId) => `${chat}/${message}`;
  return {
    has: (chat: number, message: NativeId, runs: readonly Run[]) =>
      texts.get(keyOf(chat, message)) === renderTelegramHtml(runs),
    note: (chat: number, message: NativeId, runs: readonly Run[]) =>
      void texts.set(keyOf(chat, message), renderTelegramHtml(runs)),
    forget: (chat: number, message: NativeId) => void texts.delete(keyOf(chat, message)),
  };
}

export type PartsDeps = {
  readonly api: BotApi;
  readonly send: BotLink['send'];
  readonly clock: Clock;
  readonly log: () => Logger;
  readonly moves: GroupMoves;
  readonly shown: ShownTexts;
};

/** A body in HTML mode, or as plain text without any. */
export type Body = { readonly text: string; readonly parse_mode?: 'HTML' };

/** Tries the body with markup, and plain text if Telegram refuses the markup. */
export async function withFallback<T>(
  runs: readonly Run[],
  log: Logger,
  call: (body: Body) => Promise<T>,
): Promise<T> {
  try {
    return await call({ text: renderTelegramHtml(runs), parse_mode: 'HTML' });
  } catch (error) {
    if (!isFormattingRefused(error)) throw error;
    log.warn('telegram refused the formatting, sending plain text', { error });
  }
  const plain = plainText(runs);
  return call({ text: plain.length <= MESSAGE_UNITS ? plain : runsText(runs) });
}

/** Turns the draft into the text if it can be edited, or sends anew. @throws DeliveryError */
export async function sendText(
  post: Post,
  draft: NativeId | undefined,
  { requestBegins }: Pick<SendContext, 'requestBegins'>,
  deps: PartsDeps,
): Promise<NativeId> {
  const changed = draft === undefined ? undefined : await rewrite(post, draft, deps);
  if (changed !== undefined) return changed;
  const begins = requestBegins();
  // A send that was given up before does not wait for it.
  begins.catch(() => undefined);
  return sendNew({ ...post, begins }, deps);
}

export type Post = PostPlace &
  Sending & {
    readonly runs: readonly Run[];
    /** Precedes the text, e.g. that an earlier try of this part may have arrived. */
    readonly marks: readonly string[];
    /** Buttons below it. */
    readonly keyboard: Keyboard | undefined;
  };

/** Turns the draft into the final text; undefined when the draft is gone. */
async function rewrite(
  { chat, runs, keyboard, signal }: Post,
  draft: NativeId,
  deps: PartsDeps,
): Promise<NativeId | undefined> {
  const isShown = keyboard === undefined && deps.shown.has(chat, draft, runs);
  deps.shown.forget(chat, draft);
  if (isShown) return draft;
  try {
    await editText({ chat, message: draft, keyboard }, runs, deps, signal);
    return draft;
  } catch (error) {
    if (isUnchanged(error)) return draft;
    if (isGone(error)) return undefined;
    // A repeated edit leaves the same text.
    throw toDeliveryError(error, true);
  }
}

/** Without a keyboard the text loses the one it had (Bot API, editMessageText). @throws BotCallError */
export function editText(
  place: {
    readonly chat: number;
    readonly message: NativeId;
    readonly keyboard?: Post['keyboard'];
  },
  runs: readonly Run[],
  { api, log }: Pick<PartsDeps, 'api' | 'log'>,
  signal: AbortSignal,
) {
  const target = {
    chat_id: place.chat,
    message_id: fromNativeId(place.message),
    link_preview_options: NO_PREVIEW,
    ...markup(place.keyboard),
  };
  return withFallback(runs, log(), (body) => api.editMessageText({ ...target, ...body }, signal));
}

const markup = (keyboard: Keyboard | undefined): { reply_markup?: Keyboard } =>
  keyboard === undefined ? {} : { reply_markup: keyboard };

export const NO_PREVIEW = { is_disabled: true } as const;

/**
 * Follows a group that moved; if a topic was deleted the text goes to the same group outside of it
 * with a note, never into another topic.
 * @throws DeliveryError
 */
export const sendNew = (post: Post, deps: PartsDeps): Promise<NativeId> =>
  followed(post, deps.moves, (place) => {
    const isOutside = place.thread !== post.thread;
    const marks = isOutside ? [...post.marks, TOPIC_MARK] : post.marks;
    return sendOnce({ ...post, ...place, marks }, deps);
  });

export type PostPlace = {
  readonly chat: number;
  /** Its topic. */
  readonly thread: number | undefined;
  readonly replyTo: number | undefined;
};

/** Follows a group that moved; replaces a deleted topic by its group. @throws DeliveryError */
export async function followed<T>(
  { chat, thread, replyTo }: PostPlace,
  moves: GroupMoves,
  send: (place: PostPlace) => Promise<T>,
): Promise<T> {
  try {
    return await send({ chat, thread, replyTo });
  } catch (error) {
    const to = migratedTo(error);
    if (to !== undefined && to !== chat) {
      await moves.note({ from: chat, to });
      return followed({ chat: to, thread, replyTo: undefined }, moves, send);
    }
    if (thread !== undefined && isTopicGone(error)) {
      return followed({ chat, thread: undefined, replyTo }, moves, send);
    }
    throw toDeliveryError(error, false);
  }
}

export const targetOf = ({ chat, thread, replyTo }: PostPlace) => ({
  chat_id: chat,
  ...(thread === undefined ? {} : { message_thread_id: thread }),
  ...(replyTo === undefined
    ? {}
    : { reply_parameters: { message_id: replyTo, allow_sending_without_reply: true } }),
});

/** @throws BotCallError */
async function sendOnce(post: Post, { send, log }: PartsDeps): Promise<NativeId> {
  const { signal, begins, keyboard } = post;
  const how = { signal, begins };
  const mark = post.marks.join('');
  const fits = runsText(post.runs).length + mark.length <= MESSAGE_UNITS;
  const options = { ...targetOf(post), link_preview_options: NO_PREVIEW };
  if (mark !== '' && !fits) await send({ ...options, text: mark.trim() }, how);
  const front: readonly Run[] = mark !== '' && fits ? [{ text: mark, styles: [] }] : [];
  const sent = await withFallback([...front, ...post.runs], log(), (body) =>
    send({ ...options, ...markup(keyboard), ...body }, how),
  );
  return toNativeId(sent.message_id);
}

export function createOwnMessages(
  api: BotApi,
  moves: GroupMoves,
  log: () => Logger,
): Required<Pick<Channel, 'retracting' | 'closeChoices'>> {
  const target = (chat: ChatRef, part: NativeId) => ({
    chat_id: moves.address(chat),
    message_id: fromNativeId(part),
  });

  async function rewrite(chat: ChatRef, part: NativeId, now: string, signal: AbortSignal) {
    const [whole, ...more] = splitMarkdown(now, MESSAGE_UNITS);
    if (whole === undefined || more.length > 0) {
      await api.editMessageReplyMarkup(target(chat, part), signal);
      return false;
    }
    const place = { chat: moves.address(chat), message: part };
    await editText(place, whole.runs, { api, log }, signal);
    return true;
  }

  return {
    retracting: {
      /** A bot can delete its messages within 48 hours (Bot API, deleteMessage); older ones stay. */
      retract: (chat, parts, signal) =>
        eachPart(parts.flatMap(draftMessages), async (part) => {
          try {
            await api.deleteMessage(target(chat, part), signal);
          } catch (error) {
            if (!isNotThere(error)) throw toDeliveryError(error, true);
          }
        }),
    },

    async closeChoices(chat, part, signal, now) {
      try {
        if (now !== undefined) return await rewrite(chat, part, now, signal);
        await api.editMessageReplyMarkup(target(chat, part), signal);
        return true;
      } catch (error) {
        if (isUnchanged(error)) return true;
        if (isGone(error)) return false;
        throw toDeliveryError(error, true);
      }
    },
  };
}

// Styled text in Telegram's HTML mode (Bot API, "HTML style"). Only tags Telegram knows, always
// closed, never code around or inside another style.

const RANK: Readonly<Record<Style['kind'], number>> = {
  quote: 0,
  link: 1,
  bold: 2,
  italic: 3,
  strike: 4,
  code: 5,
  pre: 5,
};

export function renderTelegramHtml(runs: readonly Run[]): string {
  const html: string[] = [];
  let open: readonly Style[] = [];
  for (const run of runs) {
    const wanted = ordered(run.styles);
    const kept = sharedStyles(open, wanted);
    for (const style of open.slice(kept.length).reverse()) html.push(closing(style));
    for (const style of wanted.slice(kept.length)) html.push(opening(style));
    html.push(escapeHtml(run.text));
    open = wanted;
  }
  for (const style of open.toReversed()) html.push(closing(style));
  return html.join('');
}

/** Outermost first, each kind once. */
function ordered(styles: readonly Style[]): readonly Style[] {
  if (styles.length < 2) return styles;
  const first = styles.filter(
    (style, index) => styles.findIndex(({ kind }) => kind === style.kind) === index,
  );
  return first.sort((a, b) => RANK[a.kind] - RANK[b.kind]);
}

const TAGS: Readonly<Record<Style['kind'], string>> = {
  ...{ bold: 'b', italic: 'i', strike: 's', code: 'code', pre: 'pre' },
  ...{ quote: 'blockquote', link: 'a' },
};

function opening(style: Style): string {
  if (style.kind === 'link') return `<a href="${escapeHtml(style.href)}">`;
  const language = style.kind === 'pre' ? style.language : undefined;
  const inner = language === undefined ? '' : t`<code class="language-${escapeHtml(language)}">`;
  return `<${TAGS[style.kind]}>${inner}`;
}

function closing(style: Style): string {
  const hasLanguage = style.kind === 'pre' && style.language !== undefined;
  return `${hasLanguage ? '</code>' : ''}</${TAGS[style.kind]}>`;
}
