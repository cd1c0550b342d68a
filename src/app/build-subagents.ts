// Builds the helpers that turns of the agent start: where they are kept, their turns, and what people
// see of them.

import type { Agent } from '../agent/agent.ts';
import { HELPERS_SCOPE, HelperBook } from '../automation/helper-book.ts';
import { HelperDesk } from '../automation/helper-desk.ts';
import { createHelperPeople } from '../automation/helper-people.ts';
import { createHelperSeries } from '../automation/helper-series.ts';
import { HelperStarts } from '../automation/helper-starts.ts';
import { createHelperTerms } from '../automation/helper-terms.ts';
import { confinedAgent, withHelpers } from '../automation/helper-turns.ts';
import { createProfileBook } from '../automation/profile-book.ts';
import type { Courier } from '../bus/bus.ts';
import { SUBAGENT_CHANNEL } from '../core/subagent.ts';
import { createDispatcher, type Dispatcher, type DispatcherDeps } from '../gateway/dispatcher.ts';
import type { HelperDesk as PeoplesDesk } from '../gateway/helper-desk.ts';
import type { SessionSettingsStore } from '../gateway/session-settings.ts';
import type { GuardedFiles } from '../lib/guarded-files.ts';
import type { Logger } from '../lib/logger.ts';
import { createPermits } from '../lib/permits.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { Helpers } from '../tools/spawn.ts';
import type { Foundations } from './foundations.ts';
import type { BackgroundWork } from './gateway-service.ts';

export type SubagentParts = Foundations & {
  readonly files: GuardedFiles;
  readonly agent: Agent;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
};

export type Subagents = {
  /** For the tool. */
  readonly helpers: Helpers;
  /** For commands. */
  readonly desk: PeoplesDesk;
  /** `deps`: of the dispatcher for people's turns. */
  with(dispatcher: Dispatcher, deps: DispatcherDeps): Dispatcher;
  readonly background: readonly BackgroundWork[];
};

/** They are counted where they start; this only keeps them out of the places of people. */
const PLACES = 200;
const LIFETIME_MS = 86_400_000;

export function buildSubagents(parts: SubagentParts): Subagents {
  const { live, clock, log, store, bus, sessions, files, agent, models } = parts;
  const settings = () => live.config.agents.subagents;
  const book = new HelperBook(store.scope(HELPERS_SCOPE));
  const desk = new HelperDesk({ book, bus, clock, log });
  const terms = createHelperTerms({
    profiles: createProfileBook(files, () => live.defaults.workspace),
    settings,
    modelOf: async (session) => (await parts.settings.get(session)).model,
  });
  const starts = new HelperStarts({ book, desk, terms, clock, settings });
  const series = createHelperSeries({
    book,
    desk,
    log,
    childOf: (...child) => starts.childOf(...child),
  });
  desk.drivenBy((run) => series.drive(run));
  const turns = { book, desk, sessions, clock, log, models, maxDepth: () => settings().maxDepth };
  return {
    helpers: starts,
    desk: createHelperPeople({ book, desk, clock }),
    with(dispatcher, deps) {
      const own = createDispatcher({
        ...deps,
        agent: confinedAgent(agent, turns),
        permits: createPermits(PLACES),
        settings() {
          const usual = deps.settings();
          // Nobody writes on in their conversations.
          return { ...usual, coalesce: { ...usual.coalesce, mode: 'wait', quietMs: 0 } };
        },
      });
      return withHelpers(dispatcher, own, turns);
    },
    background: [
      {
        name: 'helpers',
        async run(signal) {
          await desk.recover();
          await series.run(signal);
        },
      },
      {
        name: 'words of helpers',
        run: (signal) => bus.deliver(unheard(log), { signal, concurrency: 1 }),
      },
    ],
  };
}

/** Nobody is in their conversations: what is said there besides the result goes nowhere. */
function unheard(log: Logger): Courier {
  return {
    account: SUBAGENT_CHANNEL,
    onUnknown: 'idempotent',
    lifetimeMs: LIFETIME_MS,
    async send({ id }) {
      log.info('words of a helper that nobody hears', { message: id });
      return { nativeIds: [] };
    },
  };
}
