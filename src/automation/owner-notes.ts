// Notes to an owner that are no trouble: told at once, unless that disturbs them; then at the end of
// their quiet hours.

import { randomUUID } from 'node:crypto';
import type { ChatRef } from '../core/message.ts';
import type { Logger } from '../lib/logger.ts';
import type { Announcer, AnnouncerDeps } from './announcer.ts';

export type OwnerNotesDeps = Pick<AnnouncerDeps, 'quietUntil'> & {
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly log: Logger;
  /** Where an owner is reached. */
  ownerChat(): Promise<ChatRef>;
  tellNow(text: string): void;
};

const TITLE = 'Note';

export function createOwnerNotes(deps: OwnerNotesDeps): (text: string) => void {
  const { announcer, log, ownerChat, quietUntil, tellNow } = deps;

  async function tell(markdown: string): Promise<void> {
    const chat = await ownerChat();
    if ((await quietUntil(chat)) === undefined) return tellNow(markdown);
    const id = `note/${randomUUID()}`;
    await announcer.announce({ id, chat, title: TITLE, markdown, isForeign: true });
  }

  return (text) => {
    tell(text).catch((error) => log.error('note to the owner failed', { error }));
  };
}
