// Installs memory: notes, the full-text index of notes and conversations, and the notes that are
// made from conversations.

import { SIDE_MODEL } from '../../agent/side-model.ts';
import type { TextIndex } from '../../kernel/bus/store/text-index.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { openTextIndex } from '../../kernel/home-state.ts';
import { maxFileBytes } from '../../kernel/media/files.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import { undoHandler } from '../../kernel/questions/undo.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import { scopeOfSession } from '../../kernel/sessions/index-file.ts';
import { createSessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import { createTurnPersonOf } from '../../kernel/turns/origins.ts';
import { readOnce } from '../../lib/async.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import { createProvenance, PROVENANCE, PROVENANCE_SCOPE } from '../../tools/files/provenance.ts';
import type { PastSessions, WhoseTurn } from '../../tools/read-back.ts';
import { LOCAL_ONLY } from '../local-models/index.ts';
import { FILE_SOURCES } from '../semantic-search/settings.ts';
import {
  createMemoryService,
  FORGET_SUBJECT,
  type MemoryService,
  memoryCommands,
} from './memory-service.ts';
import {
  chatsOfTurn,
  createPastSessions,
  isLocalChannel,
  NOTE_UNDO,
  openTo,
} from './memory-tools.ts';
import {
  createFileMemory,
  forgetMissingNotes,
  type MemoryStore,
  refreshAllNotes,
  refreshNotes,
  removeTornNotes,
  scopeOfNotes,
} from './notes.ts';
import {
  type AskedFrom,
  conversationsData,
  createForgetting,
  createHandedOut,
  Erasure,
  notesData,
} from './personal-data.ts';
import {
  createReflection,
  createReflectionService,
  REFLECTION_SUBJECT,
  reflectionTask,
  takeOverProposals,
} from './reflection.ts';
import {
  createSessionWatch,
  createWorkingMemories,
  type SessionWatch,
  type WorkingMemories,
} from './working-memory.ts';

export { createRecall, createRemember } from './memory-tools.ts';
export type { MemoryStore } from './notes.ts';

export type Memory = {
  /** Shared with the file tools, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  readonly notes: MemoryStore;
  readonly past: PastSessions;
  readonly watch: SessionWatch;
  readonly working: Pick<WorkingMemories, 'standing'>;
  /** Sets whose the conversation is before a command, where no turn of it ran in this process. */
  takesUp(session: SessionKey, message: InboundMessage): Promise<void>;
  /** The notes in a folder of the workspace. */
  notesOf: MemoryService['notesOf'];
  handOutPart: MemoryService['handOutPart'];
  /** The keys of the sender's own chats, without topics. */
  chatsOf(message: InboundMessage): Promise<readonly string[]>;
  readonly index: TextIndex;
  /** Indexes the changed notes of everybody. */
  indexNotes(): Promise<void>;
  /**
   * Indexes what is new, and returns the scopes of the index that the model of the turn may read.
   * @throws if the index is not usable
   */
  scopesOf(whose: WhoseTurn): Promise<Record<'notes' | 'conversations', readonly string[]>>;
};

export const MEMORY = port<Memory>('memory');

export async function install(kernel: Kernel): Promise<void> {
  const { live, clock, log, sessions, home, resources, store, questions, owners, bus } = kernel;
  const { add, contributed } = kernel;
  const { persons } = kernel.people;
  const only = kernel.use(LOCAL_ONLY);
  const workspace = () => live.defaults.workspace;
  const timeZone = () => live.config.sessions.timeZone;
  const { exclusively } = store.shared ?? {};
  const files = createGuardedFiles({ forbidden: [home.root], exclusively });
  const reader = { files, workspace, log };
  const { sessionFiles } = kernel;
  const index = resources.use(await openTextIndex(home, store, log));
  const notes = createFileMemory({ ...reader, clock, timeZone, index });
  const working = createWorkingMemories({ ...reader, clock });
  const begunAt = clock.now();
  const forgetOthers = async () => {
    await removeTornNotes(workspace(), begunAt);
    await forgetMissingNotes(index, workspace());
    if (live.config.search.embeddings.model !== '') return;
    // Nothing keeps them up to date while the search by meaning is off.
    for (const name of (await index.states(FILE_SOURCES)).keys()) await index.remove(name);
  };
  const isShared = store.shared !== undefined;
  const indexing = resources.use(
    createSessionIndexing({ files: sessionFiles, index, clock, log, forgetOthers, isShared }),
  );
  const isEnabled = () => live.config.memory.enabled;
  const staysIn = async (session: SessionKey) => (await only.holding(session)) === 'conversation';
  const watch = resources.use(
    createSessionWatch({ memory: notes, working, log, isEnabled, staysIn }),
  );
  add.sessionWatcher({ appended: watch.appended, changed: (session) => indexing.changed(session) });
  const localChats = async (channel: string) =>
    isLocalChannel(channel) ? chatsOfChannel(sessionFiles, channel) : [];
  const whose = { persons, localChats };
  const closedTo = (session: SessionKey) => only.closedTo(session);
  const past = createPastSessions({ index, indexing, sessions, clock, closedTo, ...whose });
  const chatsOf = ({ message, session, person }: AskedFrom) =>
    chatsOfTurn({ chat: message.chat, session, person }, whose);
  const { media } = kernel;
  const limit = maxFileBytes(kernel);
  const handedOut = createHandedOut({ state: store.scope('exports'), media, reader });
  const { personalData } = contributed;
  add.personalData(notesData(reader));
  add.personalData(conversationsData(sessionFiles));
  const kept = createForgetting({
    ...{ reader, sessions: sessionFiles, index, indexing, store, handedOut, chatsOf },
    personalData,
  });
  const handOut = readOnce(async () =>
    (await import('./data-export.ts')).createDataExport({
      ...{ handedOut, reader, memory: notes, working, sessionFiles, media, bus, clock, limit },
      ...{ personalData, chatsOf, reachOf: kept.reachOf },
    }),
  );
  const personOf = createTurnPersonOf(persons);
  const forgetting = new Erasure({ kept, rows: kernel.rows, bus, clock, log });
  const service = createMemoryService({ personOf, kept, handOut, forgetting, questions });
  add.answers(FORGET_SUBJECT, service.handler);
  add.answers(
    NOTE_UNDO,
    undoHandler((id) => notes.takeBackUntrusted(id)),
  );
  add.task({ name: 'index', run: (signal) => indexing.run(signal) });
  add.task({ name: 'index sweep', isOnce: true, run: (signal) => indexing.runSweeps(signal) });
  add.task({ name: 'forgetting', isOnce: true, run: (signal) => forgetting.run(signal) });
  const side = kernel.use(SIDE_MODEL);
  const reflection = createReflection({ ...reader, working });
  const reflecting = createReflectionService({
    ...{ personOf, reflection, questions, side },
    ownerChat: owners.askChat,
  });
  await takeOverProposals(kernel);
  add.answers(REFLECTION_SUBJECT, reflecting.handler);
  add.task(reflectionTask(kernel, reflecting, () => reflection.stamp(OWNER_TURN.notes)));
  add.command(...memoryCommands(service, reflecting));
  add.routes(
    [
      'GET /api/v1/memory',
      'GET /api/v1/memory/:path',
      'POST /api/v1/memory/:path',
      'POST /api/v1/forget/find',
      'POST /api/v1/forget',
    ],
    async () => (await import('./memory-routes.ts')).memoryRoutes(kernel, reader, service),
  );
  kernel.provide(PROVENANCE, createProvenance(store.scope(PROVENANCE_SCOPE), workspace));
  kernel.provide(MEMORY, {
    ...{ files, notes, past, watch, working },
    takesUp: async (session, message) => watch.opened(session, await personOf(message)),
    notesOf: (of) => service.notesOf(of),
    handOutPart: (...part) => service.handOutPart(...part),
    chatsOf: async (message) => chatsOf(await service.askingOf(message)),
    index,
    indexNotes: () => refreshAllNotes(index, reader),
    async scopesOf(turn) {
      const chats = await openTo(turn, { closedTo, ...whose });
      await indexing.flushFor(chats);
      await refreshNotes(index, reader, turn.person.notes);
      const conversations = chats.map(scopeOfSession);
      return { notes: [scopeOfNotes(turn.person.notes)], conversations };
    },
  });
}
