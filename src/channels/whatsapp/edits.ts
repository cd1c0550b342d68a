// Drafts: a message that is edited while the answer grows. An edit is a message of its own, with its
// own id, place in the pace and row; one that would have to wait is left out, the next shows more.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import { type ChatId, type MessageId, type NativeId, nativeId } from '../../kernel/message/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Editing, Retracting } from '../channel.ts';
import type { Pacer } from './pacer.ts';
import { beginningForWhatsApp } from './rules/markup.ts';
import { type SentMessage, type SentMessages, sentId } from './sent-messages.ts';
import type { Transmitter } from './transmit.ts';

/** Longest text of one message, UTF-16 units, marks included. */
export const MESSAGE_UNITS = 4000;
/** Each edit counts as a message; faster ones would only be left out. */
export const MIN_EDIT_INTERVAL_MS = 3000;
/** WhatsApp takes edits for this long after the message. */
const EDIT_WINDOW_MS = 15 * 60_000;
/** And deletions for everybody for this long. */
const DELETE_WINDOW_MS = 48 * 3_600_000;
/** Source text beyond this cannot be part of one message, whatever its marks. */
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
};

type FinalEdit = {
  readonly draft: NativeId;
  readonly message: MessageId;
  readonly chat: ChatId;
  readonly text: string;
  readonly rows: readonly KeyValueChange[];
};

export type Edits = Editing &
  Retracting & {
    /** Makes the draft the final text; false where it can no longer be edited. @throws DeliveryError */
    finish(final: FinalEdit, signal: AbortSignal): Promise<boolean>;
  };

export function createEdits(deps: EditsDeps): Edits {
  const { transmitter, sent, pacer, clock } = deps;
  const paced = (chat: ChatId) => ({ chat, isFirstContact: false, isAnswer: true });
  const noNotice = async () => undefined;

  /** The message as we sent it, while it may be edited. */
  async function editable(draft: NativeId): Promise<SentMessage | undefined> {
    const row = await sent.get(draft);
    const isYoung = row !== undefined && clock.now() - row.at < EDIT_WINDOW_MS;
    return isYoung ? row : undefined;
  }

  async function revoke(chat: ChatId, id: NativeId, jid: string, signal: AbortSignal) {
    const rows = await pacer.admit(paced(chat), signal, noNotice);
    const content = { delete: keyOf(id, jid) };
    await transmitter.send({ id: sentId(id, 'revoke'), chat, jid, content, rows }, signal);
  }

  return {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,

    async place({ chat }, markdown, { name = `${clock.now()} ${deps.random()}`, signal }) {
      const jid = await deps.admit(chat);
      await transmitter.ready(signal);
      const rows = await pacer.admit(paced(chat), signal, noNotice);
      const id = sentId(`draft of ${chat}`, name);
      const content = textContent(beginning(markdown));
      await transmitter.send({ id, chat, jid, content, rows }, signal);
      return nativeId(id);
    },

    async edit({ chat }, draft, markdown, signal) {
      const text = beginning(markdown);
      const row = await editable(draft);
      if (row === undefined || text === '' || !(await pacer.takeFree(paced(chat)))) return;
      const id = sentId(draft, `edit ${clock.now()}`);
      const content = { ...textContent(text), edit: keyOf(draft, row.jid) };
      await transmitter.send({ id, chat, jid: row.jid, content }, signal);
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
      if (isKept) throw tooOld();
    },

    async finish({ draft, message, chat, text, rows }, signal) {
      const row = await editable(draft);
      if (row === undefined) return false;
      const content = { ...textContent(text), edit: keyOf(draft, row.jid) };
      const id = sentId(message, 'edit');
      try {
        await transmitter.send({ id, chat, jid: row.jid, content, rows }, signal);
        return true;
      } catch (error) {
        const isRefused = error instanceof DeliveryError && error.code === 'whatsapp_refused';
        if (isRefused && error.remedy.kind === 'never') return false;
        throw error;
      }
    },
  };
}

const tooOld = () =>
  new DeliveryError('WhatsApp deletes messages of the last two days only', {
    certainty: 'not_sent',
    remedy: NEVER,
    code: 'whatsapp_too_old',
  });

/** No preview: it would be fetched from an address that a stranger may have chosen. */
export const textContent = (text: string) => ({ text, linkPreview: null });

const keyOf = (id: string, jid: string): WAMessageKey => ({ remoteJid: jid, fromMe: true, id });

const beginning = (markdown: string) =>
  beginningForWhatsApp(markdown.slice(0, MAX_SOURCE_CHARS), MESSAGE_UNITS);
