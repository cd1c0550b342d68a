// Reports that a message was given up: in the chat where it was requested, and if that fails too or
// nobody requested it, to the owner. One notice for a burst, and none about a notice to the owner.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Channel } from '../../channels/channel.ts';
import { createLanes, RecentMap } from '../../lib/async.ts';
import { jsonRow } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { tailOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { isSameChat } from '../access/person.ts';
import type { Courier, MessageBus, RowWrite, SentText } from '../bus/bus.ts';
import { MediaError, type MediaStore } from '../media/media.ts';
import {
  type AttachmentKind,
  attachmentTitle,
  type OutboundAttachment,
} from '../message/attachment.ts';
import type { SetAside } from '../message/delivery.ts';
import { BACKOFF, DeliveryError, NEVER, notSent } from '../message/errors.ts';
import {
  type AccountName,
  ALERT,
  accountName,
  type MessageId,
  messageId,
  type SessionKey,
} from '../message/ids.ts';
import { type ChatRef, type OutboundMessage, sessionKeyOf } from '../message/message.ts';
import { firstWords, verbatim } from '../message/untrusted.ts';
import type { Owners } from '../owners.ts';
import type { OpenRows } from '../rows.ts';

const REPEAT_MS = 3_600_000;
const MAX_REMEMBERED = 1000;
const NOTICE = 'undelivered/';

type UndeliveredDeps = Pick<Owners, 'noticeChat' | 'alert' | 'tell'> & {
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
};

export function createUndelivered(deps: UndeliveredDeps): NonNullable<Courier['setAside']> {
  const { bus, clock, log, noticeChat, alert, tell } = deps;
  const toldAt = new RecentMap<SessionKey | AccountName, number>(MAX_REMEMBERED);

  function isFirst(place: SessionKey | AccountName): boolean {
    const now = clock.now();
    if (now - (toldAt.get(place) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return false;
    toldAt.set(place, now);
    return true;
  }

  async function tellOwner(chat: ChatRef, text: string) {
    const account = accountName(chat);
    if (isSameChat(await noticeChat(account), chat)) alert(account, text);
    else tell(text, account);
  }

  return (message, aside) => {
    const { id, chat } = message;
    const unsaid = (error: unknown) =>
      log.error('notice about a lost message not sent', { id, error });
    if (aside.isOwnRule === true || id.startsWith(ALERT)) return;
    if (id.startsWith(NOTICE) || !isAnswer(message)) {
      if (isFirst(accountName(chat))) tellOwner(chat, ownerText(chat, aside)).catch(unsaid);
    } else if (isFirst(sessionKeyOf(chat))) {
      bus.send({ id: messageId(`${NOTICE}${id}`), chat, markdown: askerText(aside) }).catch(unsaid);
    }
  };
}

const isAnswer = ({ replyTo, question, finalizes }: OutboundMessage) =>
  replyTo !== undefined || question !== undefined || finalizes !== undefined;

const reasonText = ({ reason }: SetAside) => verbatim(firstWords(reason));

function askerText(aside: SetAside): string {
  if (aside.kind === 'unknown') {
    return t`My last message may not have arrived here, or not all of it. If it is missing, please ask again.`;
  }
  return (
    t`My last message, or part of it, could not be delivered here: ` +
    t`${reasonText(aside)}. Please ask again, perhaps for a shorter or plainer answer.`
  );
}

function ownerText(chat: ChatRef, aside: SetAside): string {
  return (
    t`Messages to ${verbatim(sessionKeyOf(chat))} cannot be delivered: ${reasonText(aside)}. ` +
    t`They are kept: \`nanobot dead list\` shows them, \`nanobot dead retry\` sends them again. I do ` +
    t`not report other chats of this account for an hour.`
  );
}

// The kinds of files in an answer, by content type; and as text, for a channel that carries no
// files.

const KINDS: readonly (readonly [RegExp, AttachmentKind])[] = [
  [/^image\/(?:png|jpeg|webp)$/, 'image'],
  [/^video\/mp4$/, 'video'],
  [/^audio\//, 'audio'],
];

/**
 * The kind as which a content of that type is sent; what a phone does not display itself is a
 * document.
 */
export function sentKindOf(mimeType: string): AttachmentKind {
  return KINDS.find(([types]) => types.test(mimeType))?.[1] ?? 'document';
}

const MAX_NAME_CHARS = 120;

/** A file name without folders, controls and characters with a meaning on some system. */
export function fileNameOf(text: string): string {
  const last = text.toWellFormed().split(/[/\\]/).at(-1) ?? '';
  const name = last.replace(/[\p{C}<>:"|?*]/gu, '_').replace(/^[.\s]+|[.\s]+$/g, '');
  return name === '' ? 'file' : tailOf(name, MAX_NAME_CHARS);
}

/** The message with its files replaced by lines that name them. */
export function withoutFiles(message: OutboundMessage): OutboundMessage {
  const { attachments = [], ...rest } = message;
  if (attachments.length === 0) return message;
  const lines = attachments.map(({ kind, name, sizeBytes, caption }) => {
    const title = attachmentTitle({ kind, name, sizeBytes, content: UNSENT });
    return t`(The ${title} could not be sent here.)${caption === undefined ? '' : `\n\n${caption}`}`;
  });
  return {
    ...rest,
    markdown: [rest.markdown, ...lines].filter((part) => part !== '').join('\n\n'),
  };
}

const UNSENT = { kind: 'unread', reason: '' } as const;

/** Groups files that one message of the platform can hold, in order. */
export function albumsOf(
  attachments: readonly OutboundAttachment[],
  groupOf: (attachment: OutboundAttachment) => string | undefined,
  size: number,
): readonly (readonly [OutboundAttachment, ...OutboundAttachment[]])[] {
  const albums: [OutboundAttachment, ...OutboundAttachment[]][] = [];
  for (const attachment of attachments) {
    const last = albums.at(-1);
    const group = groupOf(attachment);
    const fits = last !== undefined && last.length < size && groupOf(last[0]) === group;
    if (fits && group !== undefined) last.push(attachment);
    else albums.push([attachment]);
  }
  return albums;
}

/** @throws DeliveryError if the file is no longer in the media store, or not to be had now */
export async function contentToSend(
  { media }: OutboundAttachment,
  store: MediaStore | undefined,
): Promise<Uint8Array> {
  const content = await store?.read(media).catch(mediaUnavailable);
  if (content === undefined) throw mediaGone();
  return content;
}

/** @throws DeliveryError, to be tried again */
export function mediaUnavailable(cause: unknown): never {
  if (!(cause instanceof MediaError)) throw cause;
  throw notSent(t`the storage of files cannot be reached`, BACKOFF, cause.code, cause);
}

export const mediaGone = () =>
  notSent(t`a file of the answer is no longer stored`, NEVER, 'media_gone');

// Removes the buttons from closed questions, however they were closed. The task is on disk until it
// is done, so that a kill leaves no button permanently; a press of a remaining one is answered as
// too late.

type SpentButtonsDeps = {
  readonly rows: OpenRows;
  readonly bus: Pick<MessageBus, 'outbound' | 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

const DEADLINE_MS = 15_000;
const LOOKS = 5;
const LOOK_MS = 300;
/** At the start a channel may not be running yet. */
const TRY_AGAIN_MS = 30_000;
/** Most platforms permit no changes of a text after that. */
const KEEP_MS = 48 * 3_600_000;

/** The outcome of a question. */
export type Outcome = {
  /** Its text from then on, if the platform can change texts; empty: unchanged. */
  readonly now?: string;
  /** The text of a separate message if it cannot. */
  readonly said?: string;
};

/** Removes the buttons below the text, and shows the outcome. */
export type SpendButtons = (
  text: MessageId,
  outcome?: Outcome,
) => {
  /** Store them with what closes the question. */
  readonly rows: readonly RowWrite[];
  /** Call it when they are stored. */
  begin(): void;
};

export type SpentButtons = ReturnType<typeof createSpentButtons>;

const OUTCOME = z.object({ now: z.string(), said: z.string() });

export function createSpentButtons(deps: SpentButtonsDeps) {
  const { bus, clock, log, channel } = deps;
  const lanes = createLanes();
  const left = deps.rows<Required<Outcome>>({
    ...{ scope: 'spent-buttons', prefix: '' },
    // Rows of earlier versions hold nothing, or a text that is not needed.
    read: (row) => jsonRow(row, OUTCOME) ?? { now: '', said: '' },
    write: (outcome) => JSON.stringify(outcome),
  });

  /** A person may answer before the platform's id of the question is recorded. */
  async function sentText(text: MessageId) {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    for (let looks = LOOKS; ; looks -= 1) {
      const sent = await bus.outbound(text);
      if (sent === undefined || sent.parts.length > 0 || looks === 0) return sent;
      await clock.sleep(LOOK_MS, signal);
    }
  }

  /** One after the other; the text shows the last outcome. */
  const close = (text: MessageId) => lanes.run(text, () => closeAsLeft(text));

  async function closeAsLeft(text: MessageId): Promise<void> {
    const outcome = await left.get(text);
    const sent = await sentText(text);
    if (outcome !== undefined && sent !== undefined) {
      const { now, said } = outcome;
      const isShown = await shown(sent, now).catch((error: unknown) => {
        if (said === '') throw error;
        failed(text, error);
        return false;
      });
      const id = messageId(`${text}/outcome/${hashOf(said)}`);
      if (!isShown && said !== '') await bus.send({ id, chat: sent.chat, markdown: said });
    }
    await left.change(text, (row) => (row?.now === outcome?.now ? 'remove' : undefined));
  }

  /** Whether the text shows it now. */
  async function shown({ chat, parts, files }: SentText, now: string): Promise<boolean> {
    const part = parts[Math.max(0, parts.length - 1 - files)];
    if (part === undefined) return false;
    const signal = AbortSignal.timeout(DEADLINE_MS);
    // For a text in several parts, the last one alone would show all of it.
    const isWhole = parts.length <= 1 + files && now !== '';
    const { closeChoices } = channel(accountName(chat)) ?? {};
    const isChanged = await closeChoices?.(chat, part, signal, isWhole ? now : undefined);
    return isWhole && isChanged === true;
  }

  function failed(text: string, error: unknown): void {
    const isDelivery = error instanceof DeliveryError;
    log[isDelivery ? 'info' : 'error'](t`buttons not taken away`, { text, error });
  }

  async function closeLeft(): Promise<number> {
    await left.expire(clock.now() - KEEP_MS);
    for (const [text] of await left.entries()) {
      await close(messageId(text)).catch((error: unknown) => failed(text, error));
    }
    return (await left.list()).length;
  }

  return {
    spend(text: MessageId, { now = '', said = '' }: Outcome = {}): ReturnType<SpendButtons> {
      return {
        rows: [left.write(text, { now, said })],
        begin: () => close(text).catch((error: unknown) => failed(text, error)),
      };
    },
    /** Finishes what an earlier process left; ends when nothing of it is left. */
    async run(signal: AbortSignal): Promise<void> {
      try {
        while ((await closeLeft()) > 0) await clock.sleep(TRY_AGAIN_MS, signal);
      } catch (error) {
        if (!signal.aborted) failed('', error);
      }
    },
  };
}

const HASH_CHARS = 12;
const hashOf = (text: string) => hash('sha256', text).slice(0, HASH_CHARS);
