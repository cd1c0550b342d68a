// Marks as read what the agent works on or answers, as a person would; a mark that fails is left out.

import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { ChatId } from '../../kernel/message/ids.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { within } from './change-signal.ts';
import type { OpenLink } from './transmit.ts';

/** Takes the keys of what came in this chat and was not read yet. */
export type TakeUnread = (chat: ChatId) => Promise<readonly WAMessageKey[]>;

export type ReadReceiptsDeps = {
  readonly link: Pick<OpenLink, 'socket'>;
  readonly unread: TakeUnread;
  /** `channels.whatsapp.readReceipts`. */
  readonly isWanted: boolean;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The library asks for the privacy settings first, and then follows them. */
const DEADLINE_MS = 5000;

/** Never throws. */
export type MarkRead = (chat: ChatId, signal: AbortSignal) => Promise<void>;

export function createReadReceipts(deps: ReadReceiptsDeps): MarkRead {
  const { link, clock, log } = deps;
  return async (chat, signal) => {
    // What cannot be marked now stays unread until the next time.
    const { socket } = link;
    if (!deps.isWanted || socket === undefined) return;
    const keys = await deps.unread(chat);
    if (keys.length === 0) return;
    try {
      const limits = { clock, ms: DEADLINE_MS, signal };
      await within(
        limits,
        () => socket.readMessages([...keys]),
        () => new Error('too slow'),
      );
    } catch (error) {
      log.info('whatsapp messages not marked as read', { count: keys.length, error });
    }
  };
}
