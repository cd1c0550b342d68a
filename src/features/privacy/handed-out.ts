// The files in which people were handed what is kept of them: they hold every word of it, so they go
// when something is to be forgotten, and can be asked for again.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import { type MediaId, mediaId } from '../../kernel/message/ids.ts';
import { listFiles, type NoteReader, SESSIONS_FOLDER } from '../memory/note-files.ts';

export type HandedOut = ReturnType<typeof createHandedOut>;

export type HandedOutDeps = {
  readonly state: KeyValueStore;
  readonly media: Pick<MediaStore, 'remove'>;
  readonly reader: NoteReader;
};

/** Rows begin with whose they are; the owners' notes have an empty name. */
const PREFIX = 'of:';
const EXPORT = /^export-\d{4}-\d{2}-\d{2}\.(?:md|jsonl)$/;
const EMPTIED = 'Something in here was to be forgotten. /export writes it anew.\n';

export const exportPath = (notes: string, day: string, format: string) =>
  `${notes}${SESSIONS_FOLDER}/export-${day}.${format}`;

export function createHandedOut({ state, media, reader }: HandedOutDeps) {
  return {
    /** Durable when resolved; before the file goes out. */
    note: (notes: string, id: MediaId) => state.set(`${PREFIX}${notes}:${id}`, ''),
    async forget(notes: string): Promise<void> {
      const prefix = `${PREFIX}${notes}:`;
      for (const { key } of await state.list(prefix)) {
        // One that is on its way to the chat goes with the next wish, or after its days.
        if (await media.remove(mediaId(key.slice(prefix.length)))) await state.delete(key);
      }
      const exported = await listFiles(reader, notes + SESSIONS_FOLDER, (name) =>
        EXPORT.test(name),
      );
      for (const { path } of exported) {
        await reader.files.write(reader.workspace(), path, EMPTIED);
      }
    },
  };
}
