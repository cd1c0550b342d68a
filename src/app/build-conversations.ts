// Builds the chat commands about conversations.

import type { Agent } from '../agent/agent.ts';
import type { BuiltAgent } from '../agent/build-agent.ts';
import type { Channel } from '../channels/channel.ts';
import type { Asks } from '../features/approvals/asks.ts';
import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { ModeDesk } from '../features/modes/modes.ts';
import type { People } from '../features/people/people.ts';
import { type CompactCommandDeps, compactCommands } from '../kernel/commands/compact-command.ts';
import {
  type ConversationCommandDeps,
  conversationCommands,
  createUndo,
} from '../kernel/commands/conversation-commands.ts';
import type { ConversationDesk } from '../kernel/commands/conversation-desk.ts';
import { whyCommands } from '../kernel/commands/why-command.ts';
import type { Home } from '../kernel/config/files/home.ts';
import type { Contributions } from '../kernel/contributions.ts';
import type { AccountName } from '../kernel/message/account.ts';
import { turnId } from '../kernel/message/ids.ts';
import { sessionOf } from '../kernel/message/message.ts';
import { createSessionMaintenance } from '../kernel/sessions/maintenance.ts';
import type { Origins } from '../kernel/turns/origins.ts';
import { type SessionSettingsStore, turnSettingsOf } from '../kernel/turns/session-settings.ts';
import { createTurnPersonOf } from '../kernel/turns/turn-person.ts';
import type { Foundations } from './foundations.ts';

type DeskParts = Pick<Foundations, 'live' | 'clock'> & {
  readonly agent: Agent;
  readonly home: Home;
  readonly settings: SessionSettingsStore;
  readonly people: Pick<People, 'persons' | 'routes'>;
  readonly origins: Origins;
};

export type ConversationParts = DeskParts &
  Pick<Foundations, 'bus' | 'log'> & {
    readonly agent: BuiltAgent;
    readonly remembering: Pick<BuiltMemory, 'takesUp' | 'watch'>;
    readonly asks: Pick<Asks, 'drop'>;
    readonly modes: Pick<ModeDesk, 'work'>;
    readonly add: Contributions;
    channel(name: AccountName): Channel | undefined;
  };

export function buildConversations(parts: ConversationParts): void {
  const { add, agent, bus, people, settings, modes } = parts;
  const conversations = createConversationDesk(parts);
  const beginAnew = createBeginAnew(parts);
  add.command(
    ...conversationCommands({ conversations, people, beginAnew, undo: createUndo(parts) }),
    ...compactCommands({ settings, compacting: createCompactNow(agent, parts) }),
    ...whyCommands({ bus, conversations, modes }),
  );
}

/** What waits for an answer in a conversation and what was under way ends with it. */
function createBeginAnew({
  agent,
  asks,
  remembering,
}: {
  readonly agent: BuiltAgent;
  readonly remembering: Pick<BuiltMemory, 'takesUp' | 'watch'>;
  readonly asks: Pick<Asks, 'drop'>;
}): ConversationCommandDeps['beginAnew'] {
  return async (session, message) => {
    await remembering.takesUp(session, message);
    await asks.drop(session);
    await agent.plans.clear(session);
    await agent.reset(session);
    await remembering.watch.settled();
  };
}

/** The result is kept in the notes of the person who asked, also where no turn has run yet. */
function createCompactNow(
  agent: Pick<Agent, 'compact'>,
  { remembering, live }: Pick<ConversationParts, 'remembering' | 'live'>,
): CompactCommandDeps['compacting'] {
  return {
    configured: () => live.config.agents.defaults.compaction.engine,
    async compact(session, message, model, engine) {
      await remembering.takesUp(session, message);
      const report = await agent.compact(session, message, model, engine);
      await remembering.watch.settled();
      return report;
    },
  };
}

/** Nothing is asked: there is no turn. */
const NO_TURN = {
  steer: async () => [],
  say: async () => undefined,
  askOwner: async () => ({ text: '', isWaiting: false }),
  post: async () => ({ status: 'failed', text: '' }) as const,
  ask: async () => '',
};

function createConversationDesk(parts: DeskParts): ConversationDesk {
  const { live, clock, agent, home, settings, people, origins } = parts;
  const personOf = createTurnPersonOf(people.persons);
  const care = () =>
    createSessionMaintenance({ folder: home.sessions, workspace: live.defaults.workspace, clock });
  return {
    async context(message) {
      const session = sessionOf(message);
      const [chosen, person, { rights }] = await Promise.all([
        settings.get(session),
        personOf(message),
        origins(message),
      ]);
      return agent.inspect({
        ...NO_TURN,
        ...{ session, person, rights, chat: message.chat },
        turnId: turnId(`${session}#context`),
        messages: [{ seq: 0, message, rights, isForeign: false }],
        settings: turnSettingsOf(chosen, live.defaults),
      });
    },
    sessions: (which) =>
      'newest' in which ? care().list({ limit: which.newest }) : care().of(which),
    outcome: (session, turn) => agent.outcome(session, turn),
    restorable: (session) => agent.restorable(session),
    restore: (session, index, by) => agent.restore(session, index, by),
  };
}
