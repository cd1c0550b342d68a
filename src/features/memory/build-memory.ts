// Builds what is kept beyond one conversation: notes, the full-text index over them and over
// conversations, and what draws notes from conversations.

import type { Foundations } from '../../app/foundations.ts';
import { chatsOfTurn, createPastSessions, isOwnDoor } from '../../app/past-sessions.ts';
import { createTextIndex } from '../../kernel/bus/store/text-index.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import type { Questions } from '../../kernel/questions/question.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import {
  createSessionIndexing,
  type SessionIndexing,
} from '../../kernel/sessions/index-sessions.ts';
import { deleteLeftovers } from '../../kernel/sessions/leftovers.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { createTurnPersonOf, type TurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { PastSessions } from '../../tools/read-back.ts';
import type { LocalOnly } from '../local-models/local-only.ts';
import type { Persons } from '../people/persons.ts';
import { ForgetWork } from '../privacy/forget-work.ts';
import { createHandOut, type HandOutDeps } from '../privacy/hand-out.ts';
import { createHandedOut } from '../privacy/handed-out.ts';
import type { Asking } from '../privacy/kept-data.ts';
import { createForgetting, type ForgettingDeps } from '../privacy/personal-data.ts';
import { chatsOfJobs } from '../schedule/job-chats.ts';
import { jobsHolding } from '../schedule/job-forgetting.ts';
import { createHelperForgetting } from '../subagents/helper-forgetting.ts';
import { chatsOfNobody, createWorkLeftovers } from '../subagents/work-leftovers.ts';
import { createFileMemory } from './files.ts';
import { forgetMissingNotes } from './index-notes.ts';
import type { MemoryStore } from './memory.ts';
import { createMemoryDesk, type MemoryDesk } from './memory-desk.ts';
import { removeTornNotes } from './notes.ts';
import { createReflection } from './reflect.ts';
import {
  createReflectionDesk,
  type ReflectionDesk,
  type ReflectionDeskDeps,
} from './reflection-desk.ts';
import { createSessionWatch, type SessionWatch } from './session-watch.ts';
import { createWorkingMemories, type WorkingMemories } from './working-memory.ts';

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
  const { subagents, jobs } = parts.collections;
  const helpers = createHelperForgetting(subagents);
  const held = { reader, sessions: { folder, exclusively }, index, indexing, store };
  const work = { subagents, jobs };
  const onDisk = (channel: string) => chatsOfChannel(folder, channel);
  const ofJobs: ForgettingDeps['chatsOfJobs'] = async (chats, isOwner) => [
    ...(await chatsOfJobs(jobs, chats, isOwner)),
    ...(isOwner ? await chatsOfNobody(work, onDisk) : []),
  ];
  const leftovers = createWorkLeftovers({
    ...{ ...work, clock, log, keepDays: () => live.config.sessions.keepWorkDays },
    deleteFiles: (rule) => deleteLeftovers({ folder, exclusively }, rule),
  });
  const { forgetful } = parts;
  const limit = parts.maxFileBytes;
  const handedOut = createHandedOut({ state: store.scope('exports'), media, reader });
  const inJobs: ForgettingDeps['inJobs'] = (chats, holds) => jobsHolding(jobs, chats, holds);
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
