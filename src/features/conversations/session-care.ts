// The maintenance of stored conversations as people use it, in `nanobot sessions` and `/sessions`:
// what is deleted goes from the files, the index, the store and the records of the program.

import { existsSync } from 'node:fs';
import { type EmbeddedStore, StoreError } from '../../kernel/bus/store/store.ts';
import type { TextIndex } from '../../kernel/bus/store/text-index.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  completeSessions,
  hasState,
  storeSetting,
  withOpenState,
  withTextIndex,
} from '../../kernel/home-state.ts';
import { chatRefOf } from '../../kernel/message/message.ts';
import { type PurgedRecords, purgeRecords } from '../../kernel/observe/purge-records.ts';
import { complain } from '../../kernel/sessions/forget.ts';
import { forgetMissing } from '../../kernel/sessions/index-sessions.ts';
import type { Unwritten } from '../../kernel/sessions/journal.ts';
import {
  type Aged,
  createSessionMaintenance,
  type FileCount,
} from '../../kernel/sessions/maintenance.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';

/** Where local channels store their messages; see kernel/delivery/manager.ts. */
const LOCAL_SCOPES = ['channel:web:default', 'channel:terminal:default'];

type CareParts = Pick<Kernel, 'home' | 'clock'> & {
  readonly workspace: string;
  /** Brings what is committed into the files. */
  complete(): Promise<Unwritten>;
  /** Where it exists. */
  withIndex(work: (index: TextIndex) => Promise<void>): Promise<void>;
  withStore(work: (store: EmbeddedStore) => Promise<void>): Promise<void>;
};

export type SessionCare = ReturnType<typeof createSessionCare>;

export function createSessionCare(parts: CareParts) {
  const { home, workspace, clock, complete, withIndex, withStore } = parts;
  const files = createSessionMaintenance({ folder: home.sessions, workspace, clock });

  /** Deletes what the store holds of conversations without an entry for this time. */
  async function purgeStore({ olderThanMs, chats }: Aged): Promise<void> {
    const before = clock.now() - olderThanMs + 1;
    await withStore(async (store) => {
      // Turns of several processes read these rows; they are taken in again from files that are left.
      await store.sharedEntries?.dropMoved();
      if (chats === undefined) {
        await store.gc(olderThanMs);
        for (const scope of LOCAL_SCOPES) await store.scope(scope).expire('', before);
      }
      for (const ref of (chats ?? []).flatMap((chat) => chatRefOf(chat) ?? [])) {
        const scope = `channel:${ref.channel}:${ref.account}`;
        if (!LOCAL_SCOPES.includes(scope)) continue;
        await store.scope(scope).expire(`said/${ref.chat}/`, before);
      }
    });
  }

  async function purged(deleted: FileCount, aged: Aged): Promise<FileCount & PurgedRecords> {
    await withIndex((index) => forgetMissing(index, home.sessions));
    await purgeStore(aged);
    const isEverything = aged.olderThanMs === 0 && aged.chats === undefined;
    const before = isEverything ? Number.POSITIVE_INFINITY : clock.now() - aged.olderThanMs;
    const records = await purgeRecords(home, { before, chats: aged.chats, isEverything });
    return { ...deleted, ...records };
  }

  return {
    ...files,
    /** Before reading; what stays in the store is not shown. */
    complete,
    /** @throws the error that keeps entries of such a conversation from their file, as below */
    async archive(aged: Aged) {
      complain(await complete(), aged.chats);
      return files.archive(aged);
    },
    async purge(aged: Aged) {
      complain(await complete(), aged.chats);
      return purged(await files.purge(aged), aged);
    },
    async nuke() {
      complain(await complete());
      const { sessions, ...deleted } = await files.nuke();
      return { sessions, ...(await purged(deleted, { olderThanMs: 0 })) };
    },
  };
}

/** What a purge removed, and what it did not and why. */
export function purgedText(
  { files, bytes, lines, logs }: FileCount & PurgedRecords,
  isEveryones = true,
): string {
  const records = ngettext(msgid`${lines} line`, `${lines} lines`, lines);
  const what = t`${filesText(files)} (${bytes} bytes), ${records} of metrics and traces`;
  const rest =
    t`The audit stays, because its chain of hashes proves it whole, the costs, because budgets count ` +
    t`them, and files in media/ for media.keepDays days.`;
  if (isEveryones) {
    const logFiles = ngettext(msgid`${logs} log file`, `${logs} log files`, logs);
    return t`Deleted ${what}, ${logFiles}. ${rest}`;
  }
  return t`Deleted ${what}. ${rest} Logs stay for logging.keepDays days: they name no text and are not kept by chat.`;
}

export const filesText = (count: number) => ngettext(msgid`${count} file`, `${count} files`, count);

/**
 * For a command; what a damaged store held of the session journal is lost.
 * @throws ConfigError: the configuration says where the workspace is
 */
export async function openSessionCare(
  home: Home,
  env: Environment,
  clock: Clock,
): Promise<SessionCare> {
  const { config } = await loadConfig(home, env);
  return createSessionCare({
    ...{ home, clock, workspace: config.agents.defaults.workspace },
    complete: () =>
      completeSessions(home, clock).catch((error): Unwritten => {
        if (!(error instanceof StoreError) || error.code !== 'store_damaged') throw error;
        return new Map();
      }),
    withIndex: (work) => withIndex(home, clock, work),
    async withStore(work) {
      if (await hasState(home)) await withOpenState(home, clock, ({ store }) => work(store));
    },
  });
}

async function withIndex(
  home: Home,
  clock: Clock,
  work: (index: TextIndex) => Promise<void>,
): Promise<void> {
  if (!existsSync(home.index) && (await storeSetting(home)).engine === 'sqlite') return;
  await withTextIndex(home, clock, async (index) => {
    await work(index);
    await index.scrub();
  });
}

/** Removes files that no longer exist from the full-text index. */
export const forgetIndexed = (home: Home, clock: Clock, workspace: string): Promise<void> =>
  withIndex(home, clock, async (index) => {
    const { forgetMissingNotes } = await import('../memory/notes.ts');
    await forgetMissing(index, home.sessions);
    await forgetMissingNotes(index, workspace);
  });
