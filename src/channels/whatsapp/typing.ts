// "typing..." in the chat while the agent works and before a message that waits for its turn. A notice
// is a courtesy: where it cannot be shown, nothing else changes.

import type { WASocket } from '@whiskeysockets/baileys';
import type { ChatId } from '../../kernel/message/ids.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Typing } from '../channel.ts';
import { within } from './change-signal.ts';
import type { MarkRead } from './read-receipts.ts';
import type { OpenLink } from './transmit.ts';

export type TypingDeps = {
  readonly link: Pick<OpenLink, 'socket'>;
  addressOf(chat: ChatId): Promise<string | undefined>;
  isPaused(chat: ChatId): Promise<boolean>;
  readonly markRead: MarkRead;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Phones show one notice for about this long. */
export const TYPING_SHOWN_MS = 10_000;
const DEADLINE_MS = 3000;

/** None of these throws. */
export type TypingNotices = Typing & {
  composing(jid: string, signal: AbortSignal): Promise<void>;
  /** Takes a notice away that may still be seen. */
  done(jid: string, signal: AbortSignal): Promise<void>;
};

export function createTypingNotices(deps: TypingDeps): TypingNotices {
  const { link, clock, log } = deps;
  /** When each address was last shown a notice, monotonic. */
  const shown = new Map<string, number>();

  async function tell(jid: string, notice: 'composing' | 'paused', signal: AbortSignal) {
    const { socket } = link;
    if (socket === undefined) return;
    const limits = { clock, ms: DEADLINE_MS, signal };
    const send = () => sendNotice(socket, notice, jid);
    try {
      await within(limits, send, () => new Error('too slow'));
    } catch (error) {
      log.debug('whatsapp typing notice not shown', { error });
    }
  }

  async function composing(jid: string, signal: AbortSignal): Promise<void> {
    const now = clock.monotonic();
    for (const [other, at] of shown) if (now - at > 2 * TYPING_SHOWN_MS) shown.delete(other);
    shown.set(jid, now);
    await tell(jid, 'composing', signal);
  }

  return {
    intervalMs: TYPING_SHOWN_MS,
    composing,
    async done(jid, signal) {
      if (shown.delete(jid)) await tell(jid, 'paused', signal);
    },
    async show({ chat }, signal) {
      const [jid, isPaused] = await Promise.all([deps.addressOf(chat), deps.isPaused(chat)]);
      if (jid === undefined || isPaused) return;
      await deps.markRead(chat, signal);
      await composing(jid, signal);
    },
  };
}

const sendNotice = (socket: WASocket, notice: 'composing' | 'paused', jid: string) =>
  socket.sendPresenceUpdate(notice, jid);
