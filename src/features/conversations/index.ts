// Installs the chat commands about conversations: state, reset, compaction and explanations.

import { AGENT } from '../../agent/install.ts';
import { MODEL_SERVERS, MODELS } from '../../agent/models.ts';
import { LOCAL_OWNER } from '../../channels/local-channel.ts';
import { chatTitle } from '../../channels/web/chat-log.ts';
import type { Command } from '../../kernel/commands/command-access.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { channelScope, type SessionKey, turnId } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  chatRefOf,
  type InboundMessage,
  sessionOf,
} from '../../kernel/message/message.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { createTurnPersonOf, turnSettingsOf } from '../../kernel/turns/origins.ts';
import { LOCAL_MODELS } from '../local-models/index.ts';
import { MEMORY } from '../memory/index.ts';
import { MODE_SERVICE } from '../modes/index.ts';
import { PLANS } from '../plans/index.ts';
import { JOBS } from '../schedule/index.ts';
import { JOB_CHANNEL } from '../schedule/settings.ts';
import { SUBAGENTS } from '../subagents/index.ts';
import { WORKFLOWS } from '../workflows/index.ts';
import { compactCommands, conversationCommands } from './conversation-commands.ts';
import { createTakeOver, dropQuestions } from './take-over.ts';
import { whyCommands } from './why-command.ts';

export { STOP } from './stop-command.ts';

export function install(kernel: Kernel): void {
  const { add, bus, live, clock, settings, log, channels } = kernel;
  const agent = kernel.use(AGENT);
  const memory = kernel.use(MEMORY);
  const plans = kernel.use(PLANS);
  const context = createContextOf(kernel);
  const zoneOf = createZoneOf(kernel);
  add.command(
    ...conversationCommands({
      ...{ agent, bus, log, channels, context, zoneOf, sessions: createSessionsCommand(kernel) },
      // A reset drops pending questions and ends turns in progress.
      async beginAnew(session, message) {
        await memory.takesUp(session, message);
        await dropQuestions(kernel, session);
        await plans.clear(session);
        const { trustedUntil } = await settings.get(session);
        if (trustedUntil !== undefined) {
          await settings.change(session, { trustedUntil: undefined });
        }
        await agent.reset(session);
        await memory.watch.settled();
      },
    }),
    ...compactCommands({
      settings,
      configured: () => live.config.agents.defaults.compaction.engine,
      // The result goes to the notes of the person who asked, also where no turn has run yet.
      async compact(session, message, chosen) {
        await memory.takesUp(session, message);
        const report = await agent.compact(session, message, chosen);
        await memory.watch.settled();
        return report;
      },
    }),
    ...whyCommands({
      ...{ agent, context, zoneOf, bus, clock, settings, modes: kernel.use(MODE_SERVICE) },
      isOwnerHere: async (message) => (await kernel.origins(message)).isOwnerHere,
    }),
  );
  addSessionRoutes(kernel);
  addChatSettings(kernel);
}

function addSessionRoutes(kernel: Kernel) {
  const { add, people, store } = kernel;
  let changes = 0;
  const changed = () => {
    changes += 1;
  };
  add.sessionWatcher({ appended: changed, changed });
  async function nameOf(session: SessionKey): Promise<string | undefined> {
    const chat = chatRefOf(session);
    if (chat === undefined) return undefined;
    const title = await chatTitle(store.scope(channelScope(chat)), chat.chat);
    return title ?? (await people.persons.inChat(chat))?.name;
  }
  const takeOver = createTakeOver(kernel, { nameOf, changed });
  add.stage(takeOver.stage);
  add.routes(
    [
      'GET /api/v1/sessions',
      'GET /api/v1/sessions/from/:offset',
      'GET /api/v1/sessions/events',
      'GET /api/v1/sessions/:session/events',
      'GET /api/v1/sessions/:session/turns/:before',
      'GET /api/v1/sessions/:session/before-reset/:beforeReset/turns/:before',
      'GET /api/v1/sessions/:session/export',
      'POST /api/v1/sessions/search',
      'POST /api/v1/sessions/:session/take-over',
      'POST /api/v1/sessions/:session/hand-back',
      'POST /api/v1/sessions/:session/answers',
      'GET /api/v1/messages/:message/trace',
    ],
    async () => {
      const { sessionRoutes } = await import('./session-routes.ts');
      return sessionRoutes(kernel, {
        ...{ care: await openCare(kernel), nameOf, takeOver },
        ...{ changes: () => changes, costOf: await costIn(kernel) },
      });
    },
  );
  const { nameOf: jobName } = kernel.use(JOBS);
  add.routes(
    ['GET /api/v1/runs', 'GET /api/v1/runs/events', 'POST /api/v1/runs/:id/stop'],
    async () =>
      (await import('./run-routes.ts')).runRoutes(kernel, {
        ...{ changes: () => changes, costOf: await costIn(kernel) },
        subagents: kernel.use(SUBAGENTS).service,
        workflows: kernel.useIfOn(WORKFLOWS)?.service ?? NO_WORKFLOWS,
        async nameOf(session) {
          const chat = chatRefOf(session);
          return chat?.channel === JOB_CHANNEL ? jobName(chat.chat) : nameOf(session);
        },
      }),
  );
}

const NO_WORKFLOWS = { all: async () => [], cancel: async () => '' };

async function costIn({ live }: Kernel) {
  const { conversationCost } = await import('../spending/rules/conversation-cost.ts');
  return (entries: readonly TranscriptEntry[]) => {
    const { models, limits } = live.config;
    return conversationCost(entries, models.prices, limits.budget.currency);
  };
}

function addChatSettings(kernel: Kernel) {
  const { add, live, env } = kernel;
  const { persons } = kernel.people;
  const { current: models } = kernel.use(MODELS);
  const servers = kernel.use(MODEL_SERVERS);
  const personIn = (chat: ChatRef) => persons.author({ chat, sender: LOCAL_OWNER });
  add.routes(
    [
      'GET /api/v1/chats/:chat/settings',
      'POST /api/v1/chats/:chat/settings',
      'GET /api/v1/models',
      'GET /api/v1/commands',
    ],
    async () => {
      const { chatSettingsRoutes } = await import('./chat-settings.ts');
      const { COMMAND_LIST } = await import('../command-list.ts');
      const { setApprovals } = await import('../people/index.ts');
      const { chosenEngines } = await import('../voice/index.ts');
      const { usableModels } = await import('../../providers/model-setup.ts');
      return chatSettingsRoutes(kernel, {
        ...{ models, local: kernel.use(LOCAL_MODELS), modes: kernel.use(MODE_SERVICE) },
        commands: COMMAND_LIST,
        modelNames: () => usableModels(live.config, env, servers.current()),
        hears: () => chosenEngines(live.config, env).transcription !== undefined,
        approvals: {
          of: personIn,
          async set(chat, policy) {
            const person = await personIn(chat);
            if (person === undefined) return false;
            return (await setApprovals(persons, person.id, policy)) !== undefined;
          },
        },
      });
    },
  );
}

async function openCare({ live, clock, home, store, sessionFiles, afterwork, use }: Kernel) {
  const memory = use(MEMORY);
  const { createSessionCare } = await import('./session-care.ts');
  return createSessionCare({
    ...{ home, clock, workspace: live.defaults.workspace },
    complete() {
      afterwork.finish();
      return sessionFiles.complete();
    },
    withIndex: (work) => work(memory.index),
    withStore: (work) => work(store),
  });
}

/** Loaded on use. */
function createSessionsCommand(kernel: Kernel): Command['run'] {
  const { people } = kernel;
  const memory = kernel.use(MEMORY);
  const zoneOf = createZoneOf(kernel);
  return async (origin, argument) => {
    const { sessionsAnswer } = await import('./sessions-command.ts');
    return sessionsAnswer(origin, argument, {
      ...{ care: await openCare(kernel), chatsOf: memory.chatsOf, handOut: memory.handOutPart },
      personIn: (chat) => people.persons.inChat(chat),
      zoneOf,
    });
  };
}

const createZoneOf = (kernel: Kernel) => async (message: InboundMessage) =>
  (await kernel.people.persons.author(message))?.timeZone ?? '';

/** Asks nobody: there is no turn. */
const NO_TURN = {
  steer: async () => [],
  say: async () => undefined,
  judge: async () => undefined,
  post: async () => ({ status: 'failed', text: '' }) as const,
  ask: async () => '',
};

/** What the next call of a conversation would use, for the sender. */
function createContextOf(kernel: Kernel) {
  const { live, settings, people, origins } = kernel;
  const agent = kernel.use(AGENT);
  const personOf = createTurnPersonOf(people.persons);
  return async (message: InboundMessage) => {
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
  };
}
