// The content of outgoing messages: text, files with their captions, and drafts that are edited
// while the answer grows. An edit is a message of its own with its own id, pacing slot and row; one
// that would have to wait is skipped.

import type { AnyMessageContent, WAMessageKey } from '@whiskeysockets/baileys';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { contentToSend } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { DeliveryError, NEVER, notSent } from '../../kernel/message/errors.ts';
import { type ChatId, type MessageId, type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../kernel/message/message.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Editing, Retracting } from '../channel.ts';
import type { Contexts } from './context.ts';
import { answerTo, type Pacer } from './pacer.ts';
import { beginningForWhatsApp, splitForWhatsApp } from './rules/markup.ts';
import { type SentMessage, type SentMessages, sentId } from './sent-messages.ts';
import type { Transmitter } from './transmit.ts';

/** Longest text of one message, UTF-16 units, marks included. */
export const MESSAGE_UNITS = 4000;
/** Each edit counts as a message; faster ones would only be skipped. */
export const MIN_EDIT_INTERVAL_MS = 3000;
/** WhatsApp accepts edits for this long after the message. */
const EDIT_WINDOW_MS = 15 * 60_000;
/** And deletions for everybody for this long. */
const DELETE_WINDOW_MS = 48 * 3_600_000;
/** Source text beyond this does not fit in one message, whatever its markup. */
const MAX_SOURCE_CHARS = 4 * MESSAGE_UNITS;

export type EditsDeps = {
  readonly transmitter: Transmitter;
  readonly sent: SentMessages;
  readonly pacer: Pacer;
  readonly clock: Clock;
  /** 0 to 1. */
  readonly random: () => number;
  /** The address of a chat that may be written to. @throws DeliveryError not_sent */
  admit(chat: ChatId): Promise<string>;
  readonly contexts: Pick<Contexts, 'of'>;
};

type FinalEdit = {
  readonly draft: NativeId;
  readonly message: MessageId;
  readonly chat: ChatId;
  readonly text: string;
  readonly rows: readonly KeyValueChange[];
};

export type Edits = ReturnType<typeof createEdits>;

export function createEdits(deps: EditsDeps) {
  const { transmitter, sent, pacer, clock } = deps;

  /** The sent message, while it may be edited. */
  async function editable(draft: NativeId): Promise<SentMessage | undefined> {
    const row = await sent.get(draft);
    const isYoung = row !== undefined && clock.now() - row.at < EDIT_WINDOW_MS;
    return isYoung ? row : undefined;
  }

  async function revoke(chat: ChatId, id: NativeId, jid: string, signal: AbortSignal) {
    const rows = await pacer.admit(answerTo(chat), signal);
    const content = { delete: keyOf(id, jid) };
    await transmitter.send({ id: sentId(id, 'revoke'), chat, jid, content, rows }, signal);
  }

  const power: Editing & Retracting = {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,

    async place({ chat }, markdown, { replyTo, name = `${clock.now()} ${deps.random()}`, signal }) {
      const jid = await deps.admit(chat);
      await transmitter.ready(signal);
      const rows = await pacer.admit(answerTo(chat), signal);
      const id = sentId(`draft of ${chat}`, name);
      const content = textContent(beginning(markdown));
      const context = await deps.contexts.of(chat, replyTo);
      await transmitter.send({ id, chat, jid, content, context, rows }, signal);
      return nativeId(id);
    },

    async edit({ chat }, draft, markdown, signal) {
      const text = beginning(markdown);
      const row = await editable(draft);
      if (row === undefined || text === '' || !(await pacer.takeFree(answerTo(chat)))) return;
      const id = sentId(draft, `edit ${clock.now()}`);
      await transmitter.send({ id, chat, ...editOf(draft, row, text) }, signal);
    },

    async remove({ chat }, draft, signal) {
      const jid = (await sent.get(draft))?.jid ?? (await deps.admit(chat));
      await revoke(chat, draft, jid, signal);
    },

    async retract({ chat }, parts, signal) {
      let isKept = false;
      for (const part of parts) {
        const row = await sent.get(part);
        if (row !== undefined && clock.now() - row.at < DELETE_WINDOW_MS) {
          await revoke(chat, part, row.jid, signal);
        } else isKept = true;
      }
      if (isKept) {
        const reason = 'WhatsApp can delete only messages of the last two days';
        throw notSent(reason, NEVER, 'whatsapp_too_old');
      }
    },
  };
  return {
    ...power,
    /** Changes a sent text; false if it can no longer be edited. @throws DeliveryError */
    async closeChoices(
      { chat }: ChatRef,
      part: NativeId,
      signal: AbortSignal,
      now = '',
    ): Promise<boolean> {
      const row = await editable(part);
      const [text, ...more] = splitForWhatsApp(now, MESSAGE_UNITS);
      if (row === undefined || text === undefined || more.length > 0) return false;
      const rows = await pacer.admit(answerTo(chat), signal);
      const id = sentId(part, `closed ${now}`);
      await transmitter.send({ id, chat, ...editOf(part, row, text), rows }, signal);
      return true;
    },
    /** Makes the draft the final text; false if it is too old to edit. @throws DeliveryError */
    async finish(
      { draft, message, chat, text, rows }: FinalEdit,
      signal: AbortSignal,
    ): Promise<boolean> {
      const row = await editable(draft);
      if (row === undefined) return false;
      const id = sentId(message, 'edit');
      try {
        await transmitter.send({ id, chat, ...editOf(draft, row, text), rows }, signal);
        return true;
      } catch (error) {
        const isRefused = error instanceof DeliveryError && error.code === 'whatsapp_refused';
        if (isRefused && error.remedy.kind === 'never') return false;
        throw error;
      }
    },
  };
}

/** No preview: it would be fetched from a URL that may be untrusted content. */
export const textContent = (text: string) => ({ text, linkPreview: null });

/** Only texts are edited; the new one quotes and disappears as the first did. */
const editOf = (id: NativeId, { jid, message }: SentMessage, text: string) => ({
  jid,
  content: { ...textContent(text), edit: keyOf(id, jid) },
  context: message.extendedTextMessage?.contextInfo ?? undefined,
});

const keyOf = (id: string, jid: string): WAMessageKey => ({ remoteJid: jid, fromMe: true, id });

const beginning = (markdown: string) =>
  beginningForWhatsApp(markdown.slice(0, MAX_SOURCE_CHARS), MESSAGE_UNITS);

// Files of an answer as WhatsApp messages: each one separately, with its caption if that kind of
// message has one. The library encrypts and uploads the content when the message is created.

/** Longest caption a person can write, UTF-16 units. */
export const CAPTION_UNITS = 1024;

/** Content of one WhatsApp message. */
export type Unit =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: OutboundAttachment; readonly caption?: string };

export function unitsOf({ markdown, attachments = [] }: OutboundMessage): readonly Unit[] {
  return [...textUnits(markdown), ...attachments.flatMap(fileUnits)];
}

const textUnits = (markdown: string): readonly Unit[] =>
  splitForWhatsApp(markdown, MESSAGE_UNITS).map((text) => ({ kind: 'text', text }));

function fileUnits(file: OutboundAttachment): readonly Unit[] {
  const { caption, kind } = file;
  if (caption === undefined) return [{ kind: 'file', file }];
  const parts = splitForWhatsApp(caption, CAPTION_UNITS);
  const [only, ...more] = parts;
  const fits = kind === 'image' || kind === 'video' || kind === 'document';
  if (only === undefined) return [{ kind: 'file', file }];
  if (fits && more.length === 0) return [{ kind: 'file', file, caption: only }];
  return [{ kind: 'file', file }, ...textUnits(caption)];
}

/** @throws DeliveryError if the file is no longer in the media store */
export async function contentOfUnit(unit: Unit, media: MediaStore): Promise<AnyMessageContent> {
  if (unit.kind === 'text') return textContent(unit.text);
  const content = Buffer.from(await contentToSend(unit.file, media));
  return fileContent(unit.file, content, unit.caption);
}

/** No preview: creating one would parse the file with another library. */
const NO_PREVIEW = { jpegThumbnail: '' } as const;

function fileContent(
  { kind, name, mimeType }: OutboundAttachment,
  content: Buffer,
  caption: string | undefined,
): AnyMessageContent {
  const words = caption === undefined ? {} : { caption };
  switch (kind) {
    case 'image':
      return { image: content, mimetype: mimeType, ...NO_PREVIEW, ...words };
    case 'video':
      return { video: content, mimetype: mimeType, ...NO_PREVIEW, ...words };
    case 'video_note':
      return { video: content, mimetype: mimeType, ptv: true, ...NO_PREVIEW };
    case 'audio':
      return { audio: content, mimetype: mimeType, seconds: 0 };
    case 'voice':
      // Phones play only this as a voice message.
      return { audio: content, mimetype: 'audio/ogg; codecs=opus', ptt: true, seconds: 0 };
    case 'sticker':
    case 'document':
      return { document: content, mimetype: mimeType, fileName: name, ...words };
  }
}
