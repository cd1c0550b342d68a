// Builds what is kept beyond one conversation: notes, the full-text index over them and over
// conversations, and what draws notes from conversations.

import { HELPERS_SCOPE, HelperBook } from '../automation/helper-book.ts';
import { createHelperForgetting } from '../automation/helper-forgetting.ts';
import { JOBS_SCOPE, JobBook } from '../automation/job-book.ts';
import { chatsOfJobs } from '../automation/job-chats.ts';
import { jobsHolding } from '../automation/job-forgetting.ts';
import { chatsOfNobody, createWorkLeftovers } from '../automation/work-leftovers.ts';
import type { SessionKey } from '../core/ids.ts';
import type { InboundMessage } from '../core/message.ts';
import { OWNER_TURN } from '../core/notes.ts';
import { ForgetWork } from '../gateway/forget-work.ts';
import type { Asking } from '../gateway/kept-data.ts';
import type { LocalOnly } from '../gateway/local-only.ts';
import { createMemoryDesk, type MemoryDesk } from '../gateway/memory-desk.ts';
import type { Persons } from '../gateway/persons.ts';
import type { Questions } from '../gateway/question.ts';
import {
  createReflectionDesk,
  type ReflectionDesk,
  type ReflectionDeskDeps,
} from '../gateway/reflection-desk.ts';
import { createTurnPersonOf, type TurnPersonOf } from '../gateway/turn-person.ts';
import { createGuardedFiles, type GuardedFiles } from '../lib/guarded-files.ts';
import { createFileMemory } from '../memory/files.ts';
import { forgetMissingNotes } from '../memory/index-notes.ts';
import type { MemoryStore } from '../memory/memory.ts';
import { createReflection } from '../memory/reflect.ts';
import { createSessionWatch, type SessionWatch } from '../memory/session-watch.ts';
import { removeTornNotes } from '../memory/torn-notes.ts';
import { createWorkingMemories, type WorkingMemories } from '../memory/working-memory.ts';
import { chatsOfChannel } from '../sessions/forget.ts';
import { createSessionIndexing, type SessionIndexing } from '../sessions/index-sessions.ts';
import { deleteLeftovers } from '../sessions/leftovers.ts';
import type { SessionStore } from '../sessions/store.ts';
import { createTextIndex } from '../store/text-index.ts';
import type { PastSessions } from '../tools/session-search.ts';
import type { Foundations } from './foundations.ts';
import { createHandOut, type HandOutDeps } from './hand-out.ts';
import { createHandedOut } from './handed-out.ts';
import type { Home } from './home.ts';
import { createForgetting, type ForgettingDeps } from './kept-data.ts';
import { chatsOfTurn, createPastSessions, isOwnDoor } from './past-sessions.ts';

export type BuiltMemory = {
  /** Shared with the file tools, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  readonly memory: MemoryStore;
  readonly past: PastSessions;
  readonly desk: MemoryDesk;
  readonly forgetting: Pick<ForgetWork, 'run'>;
  reflecting(later: Pick<ReflectionDeskDeps, 'side' | 'questions' | 'ownerChat'>): ReflectionDesk;
  /** Of what the owners' memory could be thought over for. */
  reflectionStamp(): Promise<string>;
  readonly indexing: Pick<SessionIndexing, 'run'>;
  /** Conversations of work that is over. */
  readonly leftovers: ReturnType<typeof createWorkLeftovers>;
  readonly watch: SessionWatch;
  readonly working: Pick<WorkingMemories, 'standing'>;
  /** A command says whose the conversation is, where no turn of it has in this process. */
  takesUp(session: SessionKey, message: InboundMessage): Promise<void>;
  /** Those of the foundations; what is appended is followed. */
  readonly sessions: SessionStore;
};

export type MemoryParts = Foundations & {
  readonly home: Home;
  readonly resources: AsyncDisposableStack;
  readonly maxFileBytes: HandOutDeps['limit'];
  /** Which conversations must not be read from others. */
  readonly only: Pick<LocalOnly, 'closedTo' | 'holding'>;
  /** Built later, as is what follows. */
  persons(): Persons;
  questions(): Questions;
  forgetful: ForgettingDeps['forgetful'];
};

export function buildMemory(parts: MemoryParts): BuiltMemory {
  const { live, clock, log, sessions, home, resources, store, only } = parts;
  const workspace = () => live.defaults.workspace;
  const timeZone = () => live.config.sessions.timeZone;
  const files = createGuardedFiles({ forbidden: [home.root] });
  const reader = { files, workspace, log };
  const folder = home.sessions;
  const index = resources.use(createTextIndex({ path: home.index, log }));
  const memory = createFileMemory({ ...reader, clock, timeZone, index });
  const working = createWorkingMemories({ ...reader, clock });
  const begunAt = clock.now();
  const forgetOthers = async () => {
    await removeTornNotes(workspace(), begunAt);
    await forgetMissingNotes(index, workspace());
  };
  const indexing = createSessionIndexing({ folder, index, clock, log, forgetOthers });
  const isEnabled = () => live.config.memory.enabled;
  const staysIn = async (session: SessionKey) => (await only.holding(session)) === 'conversation';
  const watch = resources.use(createSessionWatch({ memory, working, log, isEnabled, staysIn }));
  const ownDoorChats = async (channel: string) =>
    isOwnDoor(channel) ? chatsOfChannel(folder, channel) : [];
  const whose = { persons: parts.persons, ownDoorChats };
  const past = createPastSessions({
    ...{ index, indexing, sessions, clock, ...whose },
    closedTo: (session) => only.closedTo(session),
  });
  const chatsOf = ({ message, session, person }: Asking) =>
    chatsOfTurn({ chat: message.chat, session, person }, whose);
  const { exclusively, media, bus } = parts;
  const helperBook = new HelperBook(store.scope(HELPERS_SCOPE));
  const helpers = createHelperForgetting(helperBook);
  const held = { reader, sessions: { folder, exclusively }, index, indexing, store };
  const book = new JobBook({ state: store.scope(JOBS_SCOPE) });
  const work = { helpers: helperBook, jobs: book };
  const onDisk = (channel: string) => chatsOfChannel(folder, channel);
  const ofJobs: ForgettingDeps['chatsOfJobs'] = async (chats, isOwner) => [
    ...(await chatsOfJobs(book, chats, isOwner)),
    ...(isOwner ? await chatsOfNobody(work, onDisk) : []),
  ];
  const leftovers = createWorkLeftovers({
    ...{ ...work, clock, log, keepDays: () => live.config.sessions.keepWorkDays },
    deleteFiles: (rule) => deleteLeftovers({ folder, exclusively }, rule),
  });
  const { forgetful } = parts;
  const limit = parts.maxFileBytes;
  const handedOut = createHandedOut({ state: store.scope('exports'), media, reader });
  const inJobs: ForgettingDeps['inJobs'] = (chats, holds) => jobsHolding(book, chats, holds);
  const others = { helpers, handedOut, inJobs, forgetful };
  const forgetting = { ...held, ...others, chatsOf, chatsOfJobs: ofJobs };
  const handing = { handedOut, reader, memory, working, folder, media, bus, clock, chatsOf, limit };
  const personOf: TurnPersonOf = (message) => createTurnPersonOf(parts.persons())(message);
  const kept = { ...createForgetting(forgetting), ...createHandOut(handing) };
  const forgetWork = new ForgetWork({ kept, state: store.scope('forget'), bus, clock, log });
  const desk = createMemoryDesk({
    ...{ personOf, kept, forgetting: forgetWork },
    questions: parts.questions,
  });
  const reflection = createReflection({ ...reader, working });
  const reflected = { personOf, state: store.scope('reflection'), reflection };
  const reflecting: BuiltMemory['reflecting'] = (later) =>
    createReflectionDesk({ ...reflected, ...later });
  const followed = followedSessions(sessions, indexing, watch);
  return {
    ...{
      files,
      memory,
      past,
      desk,
      forgetting: forgetWork,
      reflecting,
      watch,
      working,
      leftovers,
      indexing,
      sessions: followed,
    },
    reflectionStamp: () => reflection.stamp(OWNER_TURN.notes),
    takesUp: async (session, message) => watch.opened(session, await personOf(message)),
  };
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
    load: (...asked) => store.load(...asked),
    async append(session, entries, options) {
      const written = await store.append(session, entries, options);
      appended(session, entries);
      return written;
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
