// Working memory: what a conversation came to, written each time it is summed up, in the notes of
// whose it is. `active` while it goes on, `completed` after a new start or an hour in which another
// one went on, `archived` once a reflection has used it.

import { createHash } from 'node:crypto';
import { isoTime } from '../core/session-file.ts';
import {
  readWorkingMemory,
  type WorkingMemory,
  type WorkingStatus,
  workingMemoryText,
} from '../core/working-memory.ts';
import type { Clock } from '../lib/clock.ts';
import {
  listFiles,
  type NoteReader,
  readNote,
  SESSION_NOTE,
  SESSIONS_FOLDER,
} from './note-files.ts';

export type WorkingMemoryDeps = NoteReader & { readonly clock: Clock };

export interface WorkingMemories {
  write(notes: string, session: string, summary: Summary): Promise<void>;
  /** Nothing where the conversation has none. */
  complete(notes: string, session: string): Promise<void>;
  /** Of this status, oldest first. */
  list(notes: string, status: WorkingStatus): Promise<readonly StoredWorkingMemory[]>;
  archive(paths: readonly string[]): Promise<void>;
}

export type Summary = {
  readonly text: string;
  readonly throughTurn: number;
  readonly isForeign: boolean;
};
export type StoredWorkingMemory = WorkingMemory & { readonly path: string };

const IDLE_MS = 3_600_000;
const HASH_CHARS = 8;
const MAX_FILE_BYTES = 1_000_000;

export function createWorkingMemories(deps: WorkingMemoryDeps): WorkingMemories {
  const { files, workspace, clock } = deps;
  const now = () => isoTime(clock.now());

  async function change(
    path: string,
    next: (before: WorkingMemory | undefined) => WorkingMemory | undefined,
  ) {
    const update = (content: Buffer | undefined) => {
      const before =
        content === undefined ? undefined : readWorkingMemory(content.toString('utf8'));
      const after = next(before);
      return after === undefined ? undefined : workingMemoryText(after);
    };
    await files.update(workspace(), path, update, { maxBytes: MAX_FILE_BYTES });
  }

  const setStatus = (path: string, status: WorkingStatus) =>
    change(path, (before) =>
      before === undefined || before.status === 'archived' ? undefined : { ...before, status },
    );

  async function all(notes: string): Promise<readonly StoredWorkingMemory[]> {
    const found = await listFiles(deps, notes + SESSIONS_FOLDER, (name) => SESSION_NOTE.test(name));
    const oldestFirst = [...found].sort((a, b) => a.modifiedAt - b.modifiedAt);
    const memories: StoredWorkingMemory[] = [];
    for (const { path } of oldestFirst) {
      const memory = readWorkingMemory((await readNote(deps, path))?.text ?? '');
      if (memory !== undefined) memories.push({ ...memory, path });
    }
    return memories;
  }

  return {
    async write(notes, session, { text, throughTurn, isForeign }) {
      const path = pathOf(notes, session);
      await change(path, (before) => ({
        sessionKey: session,
        created: before?.created ?? now(),
        updated: now(),
        status: 'active',
        lastUpdatedTurn: throughTurn,
        isForeign,
        body: text,
      }));
      const idle = (await all(notes)).filter((each) => {
        const isOther = each.path !== path && each.status === 'active';
        return isOther && clock.now() - Date.parse(each.updated) >= IDLE_MS;
      });
      for (const each of idle) await setStatus(each.path, 'completed');
    },
    complete: (notes, session) => setStatus(pathOf(notes, session), 'completed'),
    list: async (notes, status) => (await all(notes)).filter((each) => each.status === status),
    async archive(paths) {
      for (const path of paths) await setStatus(path, 'archived');
    },
  };
}

function pathOf(notes: string, session: string): string {
  const hash = createHash('sha256').update(session).digest('hex').slice(0, HASH_CHARS);
  return `${notes}${SESSIONS_FOLDER}/SESSION_${hash}.md`;
}
