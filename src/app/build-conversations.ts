// Builds what people can see of their conversations, and bring back.

import type { Agent } from '../agent/agent.ts';
import type { BuiltAgent } from '../agent/build-agent.ts';
import type { Asks } from '../features/approvals/asks.ts';
import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { People } from '../features/people/people.ts';
import type { CommandDeps } from '../kernel/commands/command.ts';
import type { ConversationDesk } from '../kernel/commands/conversation-desk.ts';
import type { Home } from '../kernel/config/files/home.ts';
import { turnId } from '../kernel/message/ids.ts';
import { sessionOf } from '../kernel/message/message.ts';
import { createSessionMaintenance } from '../kernel/sessions/export.ts';
import type { Origins } from '../kernel/turns/origins.ts';
import { turnSettingsOf } from '../kernel/turns/session-settings.ts';
import { createTurnPersonOf } from '../kernel/turns/turn-person.ts';
import type { Foundations } from './foundations.ts';

export type ConversationParts = Pick<Foundations, 'live' | 'clock'> & {
  readonly agent: Agent;
  readonly home: Home;
  readonly settings: CommandDeps['settings'];
  readonly people: Pick<People, 'persons'>;
  readonly origins: Origins;
};

/** What waits for an answer in a conversation and what was under way ends with it. */
export function createBeginAnew({
  agent,
  asks,
  remembering,
}: {
  readonly agent: BuiltAgent;
  readonly remembering: Pick<BuiltMemory, 'takesUp' | 'watch'>;
  readonly asks: Pick<Asks, 'drop'>;
}): CommandDeps['resetSession'] {
  return async (session, message) => {
    await remembering.takesUp(session, message);
    await asks.drop(session);
    await agent.plans.clear(session);
    await agent.reset(session);
    await remembering.watch.settled();
  };
}

/** What it comes to is kept in the notes of whoever asked, also where no turn has run yet. */
export function createCompactNow(
  agent: Pick<Agent, 'compact'>,
  remembering: Pick<BuiltMemory, 'takesUp' | 'watch'>,
  live: Foundations['live'],
): CommandDeps['compacting'] {
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

/** Nothing is asked: what a turn would do, this one leaves. */
const NO_TURN = {
  steer: async () => [],
  say: async () => undefined,
  askOwner: async () => ({ text: '', isWaiting: false }),
  post: async () => ({ status: 'failed', text: '' }) as const,
  ask: async () => '',
};

export function buildConversations(parts: ConversationParts): ConversationDesk {
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
