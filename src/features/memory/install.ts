// Builds what is kept beyond one conversation: notes, the full-text index over them and over
// conversations, and what draws notes from conversations.

import { SIDE_MODEL } from '../../agent/side-model.ts';
import { CHANNELS } from '../../channels/index.ts';
import { createTextIndex } from '../../kernel/bus/store/text-index.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { maxFileBytes } from '../../kernel/media/home-media.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN } from '../../kernel/message/notes.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import { createSessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import { createTurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { PastSessions } from '../../tools/read-back.ts';
import { LOCAL_ONLY } from '../local-models/install-local-only.ts';
import { ForgetWork } from '../privacy/forget-work.ts';
import { createHandOut } from '../privacy/hand-out.ts';
import { createHandedOut } from '../privacy/handed-out.ts';
import { type Asking, createForgetting } from '../privacy/personal-data.ts';
import { createFileMemory } from './files.ts';
import { forgetMissingNotes } from './index-notes.ts';
import type { MemoryStore } from './memory.ts';
import { memoryCommands } from './memory-commands.ts';
import { createMemoryDesk, FORGET_SUBJECT, type MemoryDesk } from './memory-desk.ts';
import { removeTornNotes } from './notes.ts';
import { chatsOfTurn, createPastSessions, isOwnDoor } from './past-sessions.ts';
import { createReflection } from './reflect.ts';
import { reflectionTask } from './reflection-clock.ts';
import { createReflectionDesk, REFLECTION_SUBJECT } from './reflection-desk.ts';
import { createSessionWatch, type SessionWatch } from './session-watch.ts';
import { createWorkingMemories, type WorkingMemories } from './working-memory.ts';

export type Memory = {
  /** Shared with the file tools, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  readonly notes: MemoryStore;
  readonly past: PastSessions;
  readonly watch: SessionWatch;
  readonly working: Pick<WorkingMemories, 'standing'>;
  /** A command says whose the conversation is, where no turn of it has in this process. */
  takesUp(session: SessionKey, message: InboundMessage): Promise<void>;
  /** The notes in a folder of the workspace. */
  notesOf: MemoryDesk['notesOf'];
};

export const MEMORY = port<Memory>('memory');

export function install(kernel: Kernel): void {
  const { live, clock, log, sessions, home, resources, store, questions, owners, bus } = kernel;
  const { add, contributed } = kernel;
  const { persons } = kernel.people;
  const only = kernel.use(LOCAL_ONLY);
  const workspace = () => live.defaults.workspace;
  const timeZone = () => live.config.sessions.timeZone;
  const files = createGuardedFiles({ forbidden: [home.root] });
  const reader = { files, workspace, log };
  const folder = home.sessions;
  const index = resources.use(createTextIndex({ path: home.index, log }));
  const notes = createFileMemory({ ...reader, clock, timeZone, index });
  const working = createWorkingMemories({ ...reader, clock });
  const begunAt = clock.now();
  const forgetOthers = async () => {
    await removeTornNotes(workspace(), begunAt);
    await forgetMissingNotes(index, workspace());
  };
  const indexing = createSessionIndexing({ folder, index, clock, log, forgetOthers });
  const isEnabled = () => live.config.memory.enabled;
  const staysIn = async (session: SessionKey) => (await only.holding(session)) === 'conversation';
  const watch = resources.use(
    createSessionWatch({ memory: notes, working, log, isEnabled, staysIn }),
  );
  add.sessionWatcher({ appended: watch.appended, changed: (session) => indexing.changed(session) });
  const ownDoorChats = async (channel: string) =>
    isOwnDoor(channel) ? chatsOfChannel(folder, channel) : [];
  const whose = { persons: () => persons, ownDoorChats };
  const closedTo = (session: SessionKey) => only.closedTo(session);
  const past = createPastSessions({ index, indexing, sessions, clock, closedTo, ...whose });
  const chatsOf = ({ message, session, person }: Asking) =>
    chatsOfTurn({ chat: message.chat, session, person }, whose);
  const { exclusively, media } = kernel;
  const limit = maxFileBytes(kernel);
  const handedOut = createHandedOut({ state: store.scope('exports'), media, reader });
  const kept = {
    ...createForgetting({
      ...{ reader, sessions: { folder, exclusively }, index, indexing, store, handedOut, chatsOf },
      channels: CHANNELS,
      personalData: contributed.personalData,
    }),
    ...createHandOut({
      ...{ handedOut, reader, memory: notes, working, folder, media, bus, clock, chatsOf, limit },
    }),
  };
  const personOf = createTurnPersonOf(persons);
  const forgetting = new ForgetWork({ kept, rows: kernel.rows, bus, clock, log });
  const desk = createMemoryDesk({ personOf, kept, forgetting, questions });
  add.answers(FORGET_SUBJECT, desk.handler);
  add.task({ name: 'index', run: (signal) => indexing.run(signal) });
  add.task({ name: 'forgetting', run: (signal) => forgetting.run(signal) });
  const side = kernel.use(SIDE_MODEL);
  const reflection = createReflection({ ...reader, working });
  const reflecting = createReflectionDesk({
    ...{ personOf, rows: kernel.rows, reflection, questions, side },
    ownerChat: owners.askChat,
  });
  add.answers(REFLECTION_SUBJECT, reflecting.handler);
  add.task(reflectionTask(kernel, reflecting, () => reflection.stamp(OWNER_TURN.notes)));
  add.command(...memoryCommands(desk, reflecting));
  kernel.provide(MEMORY, {
    ...{ files, notes, past, watch, working },
    takesUp: async (session, message) => watch.opened(session, await personOf(message)),
    notesOf: (of) => desk.notesOf(of),
  });
}
