// Notes to an owner that are no trouble: told at once, unless that disturbs them; then at the end of
// their quiet hours.

import { randomUUID } from 'node:crypto';
import type { AccountName } from '../../kernel/message/account.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Announcer, AnnouncerDeps } from './announcer.ts';

export type OwnerNotesDeps = Pick<AnnouncerDeps, 'quietUntil'> & {
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly log: Logger;
  /** Where an owner is told something; `about`: the account it concerns. */
  noticeChat(about?: AccountName): Promise<ChatRef>;
  tellNow(text: string, about?: AccountName): void;
};

/** `about`: the account that the text is about. */
export type TellOwner = (text: string, about?: AccountName) => void;

const TITLE = 'Note';

export function createOwnerNotes(deps: OwnerNotesDeps): TellOwner {
  const { announcer, log, noticeChat, quietUntil, tellNow } = deps;

  async function tell(markdown: string, about?: AccountName): Promise<void> {
    const chat = await noticeChat(about);
    if ((await quietUntil(chat)) === undefined) return tellNow(markdown, about);
    const id = `note/${randomUUID()}`;
    await announcer.announce({ id, chat, title: TITLE, markdown, isForeign: true });
  }

  return (text, about) => {
    tell(text, about).catch((error) => log.error('note to the owner failed', { error }));
  };
}
