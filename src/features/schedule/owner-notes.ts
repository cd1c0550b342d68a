// Keeps notes to an owner for the end of their quiet hours.

import { randomUUID } from 'node:crypto';
import type { KeepNote } from '../../kernel/owners.ts';
import type { Announcer, AnnouncerDeps } from './announcer.ts';

export type NoteKeeperDeps = Pick<AnnouncerDeps, 'quietUntil'> & {
  readonly announcer: Pick<Announcer, 'announce'>;
};

const TITLE = 'Note';

export function createNoteKeeper({ announcer, quietUntil }: NoteKeeperDeps): KeepNote {
  return async (markdown, chat) => {
    if ((await quietUntil(chat)) === undefined) return false;
    const id = `note/${randomUUID()}`;
    await announcer.announce({ id, chat, title: TITLE, markdown, isForeign: true });
    return true;
  };
}
