// Builds what is kept beyond one conversation: notes, the full-text index over them and over
// conversations, and what draws notes from conversations.

import type { Foundations } from '../../app/foundations.ts';
import { chatsOfTurn, createPastSessions, isOwnDoor } from '../../app/past-sessions.ts';
import { CHANNELS } from '../../channels/index.ts';
import { createTextIndex } from '../../kernel/bus/store/text-index.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { Registries } from '../../kernel/contributions.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import {
  createSessionIndexing,
  type SessionIndexing,
} from '../../kernel/sessions/index-sessions.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { createTurnPersonOf, type TurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { PastSessions } from '../../tools/read-back.ts';
import type { LocalOnly } from '../local-models/local-only.ts';
import type { People } from '../people/people.ts';
import { ForgetWork } from '../privacy/forget-work.ts';
import { createHandOut, type HandOutDeps } from '../privacy/hand-out.ts';
import { createHandedOut } from '../privacy/handed-out.ts';
import { type Asking, createForgetting } from '../privacy/personal-data.ts';
import { createFileMemory } from './files.ts';
import { forgetMissingNotes } from './index-notes.ts';
import type { MemoryStore } from './memory.ts';
import { createMemoryDesk, FORGET_SUBJECT, type MemoryDesk } from './memory-desk.ts';
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
  reflecting(later: Pick<ReflectionDeskDeps, 'side' | 'ownerChat'>): ReflectionDesk;
  /** Of what the owners' memory could be thought over for. */
  reflectionStamp(): Promise<string>;
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
  readonly people: Pick<People, 'persons'>;
  readonly questions: Pick<Questions, 'ask'>;
  readonly registries: Registries;
};

export function buildMemory(parts: MemoryParts): BuiltMemory {
  const { live, clock, log, sessions, home, resources, store, only, questions } = parts;
  const { persons } = parts.people;
  const { add, contributed } = parts.registries;
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
  const whose = { persons: () => persons, ownDoorChats };
  const past = createPastSessions({
    ...{ index, indexing, sessions, clock, ...whose },
    closedTo: (session) => only.closedTo(session),
  });
  const chatsOf = ({ message, session, person }: Asking) =>
    chatsOfTurn({ chat: message.chat, session, person }, whose);
  const { exclusively, media, bus } = parts;
  const held = { reader, sessions: { folder, exclusively }, index, indexing, store };
  const limit = parts.maxFileBytes;
  const handedOut = createHandedOut({ state: store.scope('exports'), media, reader });
  const forgetting = {
    ...held,
    channels: CHANNELS,
    handedOut,
    chatsOf,
    personalData: contributed.personalData,
  };
  const handing = { handedOut, reader, memory, working, folder, media, bus, clock, chatsOf, limit };
  const personOf: TurnPersonOf = createTurnPersonOf(persons);
  const kept = { ...createForgetting(forgetting), ...createHandOut(handing) };
  const forgetWork = new ForgetWork({ kept, rows: parts.rows, bus, clock, log });
  const desk = createMemoryDesk({
    ...{ personOf, kept, forgetting: forgetWork, questions },
  });
  add.answers(FORGET_SUBJECT, desk.handler);
  add.task({ name: 'index', run: (signal) => indexing.run(signal) });
  add.task({ name: 'forgetting', run: (signal) => forgetWork.run(signal) });
  const reflection = createReflection({ ...reader, working });
  const reflected = { personOf, rows: parts.rows, reflection, questions };
  const reflecting: BuiltMemory['reflecting'] = (later) =>
    createReflectionDesk({ ...reflected, ...later });
  const followed = followedSessions(sessions, indexing, watch);
  return {
    ...{
      files,
      memory,
      past,
      desk,
      reflecting,
      watch,
      working,
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
