// Builds what is kept beyond one conversation: notes, the full-text index over them and over
// conversations, and what draws notes from conversations.

import { createGuardedFiles, type GuardedFiles } from '../lib/guarded-files.ts';
import { createFileMemory } from '../memory/files.ts';
import type { MemoryStore, TextIndex } from '../memory/memory.ts';
import { createSessionWatch, type SessionWatch } from '../memory/session-watch.ts';
import { createWorkingMemories, type WorkingMemories } from '../memory/working-memory.ts';
import { createSessionIndexing, type SessionIndexing } from '../sessions/index-sessions.ts';
import type { SessionStore } from '../sessions/store.ts';
import { createTextIndex } from '../store/text-index.ts';
import type { PastSessions } from '../tools/session-search.ts';
import type { Foundations } from './foundations.ts';
import type { Home } from './home.ts';
import { createPastSessions, type PastSessionsDeps } from './past-sessions.ts';

export type BuiltMemory = {
  /** Shared with the file tools, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  readonly memory: MemoryStore;
  readonly working: WorkingMemories;
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly past: PastSessions;
  readonly watch: SessionWatch;
  /** Those of the foundations; what is appended is followed. */
  readonly sessions: SessionStore;
};

export function buildMemory(
  { live, clock, log, sessions }: Foundations,
  home: Home,
  persons: PastSessionsDeps['persons'],
  resources: AsyncDisposableStack,
): BuiltMemory {
  const workspace = () => live.defaults.workspace;
  const timeZone = () => live.config.sessions.timeZone;
  const files = createGuardedFiles({ forbidden: [home.root] });
  const index = resources.use(createTextIndex({ path: home.index, log }));
  const memory = createFileMemory({ files, workspace, clock, timeZone, log, index });
  const working = createWorkingMemories({ files, workspace, clock, log });
  const indexing = createSessionIndexing({ folder: home.sessions, index, clock, log });
  const isEnabled = () => live.config.memory.enabled;
  const watch = resources.use(createSessionWatch({ memory, working, log, isEnabled }));
  const past = createPastSessions({ index, indexing, sessions, clock, persons });
  const followed = followedSessions(sessions, indexing, watch);
  return { files, memory, working, index, indexing, past, watch, sessions: followed };
}

function followedSessions(
  store: SessionStore,
  indexing: SessionIndexing,
  watch: SessionWatch,
): SessionStore {
  const appended: SessionWatch['appended'] = (session, entries) => {
    indexing.changed(session);
    watch.appended(session, entries);
  };
  return {
    load: (session) => store.load(session),
    async append(session, entries, options) {
      await store.append(session, entries, options);
      appended(session, entries);
    },
    async appendIf(session, entries, isTrue) {
      const isWritten = await store.appendIf(session, entries, isTrue);
      if (isWritten) appended(session, entries);
      return isWritten;
    },
    turn: (session, turnId) => store.turn(session, turnId),
    earlier: (session, question) => store.earlier(session, question),
    restorePoints: (session, maxPoints) => store.restorePoints(session, maxPoints),
    async restore(session, index, by) {
      const restored = await store.restore(session, index, by);
      indexing.changed(session);
      return restored;
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
