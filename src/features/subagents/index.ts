// Installs the subagents that turns start: their rows, their turns, and their commands.

import type { Agent, TurnInput } from '../../agent/agent.ts';
import { MODELS } from '../../agent/models.ts';
import type { Courier, Turn } from '../../kernel/bus/bus.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { HandledTurn, NextStage, TurnStage } from '../../kernel/turns/stages.ts';
import { createPermits, type Permits } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { MEMORY } from '../memory/index.ts';
import { knownCost } from '../spending/index.ts';
import { agentsCommands, createSubagentView, type SubagentView } from './agents-commands.ts';
import { Calibrator, createExperience, type Experience, Votes } from './learnt.ts';
import {
  createSubagentErasure,
  openSubagents,
  type SubagentRows,
  startedFromSubagents,
} from './personal-data.ts';
import { leftMs, SUBAGENT_CHANNEL, type SubagentRun } from './rules/subagent.ts';
import { createSubagentSeries, createSubagentSignals, type SubagentSignals } from './series.ts';
import { createSpawn } from './spawn.ts';
import {
  createSubagentService,
  isTaintedTurn,
  type SubagentService,
  taskMessageId,
} from './subagent-service.ts';
import { createSubagentStarts } from './subagent-starts.ts';
import { createProfileFiles, createSubagentTerms } from './terms.ts';

export type { SubagentView } from './agents-commands.ts';
export type { Votes } from './learnt.ts';
export { type SubagentRows, withoutTopic } from './personal-data.ts';
export { type Execution, nextVoters, taskTypeOf, voteTermsOf } from './rules/calibration.ts';
export {
  type Commission,
  commissionOf,
  SUBAGENT_CHANNEL,
  type SubagentRun,
  senderOf,
  subagentSession,
} from './rules/subagent.ts';
export { type Ballot, undecidedText, type Verdict, valueKey, verdictOf } from './rules/vote.ts';
export { isTaintedTurn } from './subagent-service.ts';

export type Subagents = {
  readonly rows: SubagentRows;
  /** For commands. */
  readonly service: SubagentView;
  readonly experience: Experience;
  readonly votes: Votes;
};

export const SUBAGENTS = port<Subagents>('subagents');

const MAX_STATUS_LINES = 5;
/**
 * Concurrent turns; subagents are limited at their start, and permits of their own keep them from
 * delaying people.
 */
const PLACES = 200;
const LIFETIME_MS = 86_400_000;
/** Between two looks for subagents of processes that are gone. */
const RECOVER_MS = 10_000;

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, sessions, measuring, rows, add } = kernel;
  const { current: models } = kernel.use(MODELS);
  const settings = () => live.config.agents.subagents;
  const subagents = openSubagents(rows);
  const { runs } = subagents;
  const isShared = kernel.store.shared !== undefined;
  const service = createSubagentService({ subagents, bus, clock, log, isShared });
  const votes = new Votes(rows, (vote) =>
    measuring.telemetry.record({ kind: 'vote', at: clock.now(), durationMs: 0, ...vote }),
  );
  const calibrator = new Calibrator(rows, () => live.config);
  const experience = createExperience({
    ...{ calibrator, runs, sessions, clock, log },
    costOf: (model, usage) => knownCost(live, model, usage),
    modelOf: (name) => subagentModel(name, models()),
  });
  const profiles = createProfileFiles(kernel.use(MEMORY).files, () => live.defaults.workspace);
  add.profiles(() => (settings().enabled ? profiles.lines() : ''));
  const terms = createSubagentTerms({
    ...{ live, profiles, settings: kernel.settings },
    advice: (kind, profile, model) =>
      calibrator.advice(kind, profile, subagentModel(model, models())),
  });
  const starts = createSubagentStarts({ runs, service, terms, clock, settings });
  const series = createSubagentSeries({
    ...{ runs, service, log, votes },
    ...(isShared ? { lead: bus.lead } : {}),
    voting: () => live.config.agents.voting,
    childOf: starts.childOf,
  });
  service.drivenBy((run) => series.drive(run));
  const maxDepth = () => settings().maxDepth;
  const isOn = () => hears(live.config);
  const signals = createSubagentSignals({ bus, sessions, clock, log, isOn });
  const turns = { runs, service, sessions, clock, log, models, experience, maxDepth, signals };
  const shown = createSubagentView(runs, service, clock);
  const spawn = createSpawn(starts);
  add.tools(() => [spawn]);
  add.command(...agentsCommands(shown));
  add.personalData(createSubagentErasure(subagents));
  add.startedFrom(SUBAGENT_CHANNEL, startedFromSubagents(subagents));
  add.stillWanted(SUBAGENT_CHANNEL, async (id) => (await runs.get(id))?.state !== 'cancelled');
  add.status({
    lines: async (origin) => [
      ...(origin === undefined ? [] : await shown.atWork(origin.session)),
      ...(await votes.lines()),
      ...(await calibrator.lines()).slice(0, MAX_STATUS_LINES),
    ],
  });
  /** Also what a process leaves that dies while this one goes on. */
  async function recovering(leading: AbortSignal): Promise<void> {
    while (!leading.aborted) {
      await service.recover();
      await clock.sleep(RECOVER_MS, leading).catch(() => undefined);
    }
  }
  add.task({
    name: 'helpers',
    async run(signal) {
      if (isShared) {
        await Promise.all([bus.lead('subagents', recovering, signal), series.run(signal)]);
        return;
      }
      await service.recover();
      await series.run(signal);
    },
  });
  add.task({
    name: 'words of helpers',
    isOnce: true,
    run: (signal) => bus.deliver(unheard(log), { signal, concurrency: 1 }),
  });
  add.stage(subagentsStage(createPermits(PLACES), turns));
  kernel.provide(SUBAGENTS, { rows: subagents, service: shown, experience, votes });
}

const hears = ({ agents: { proprioception } }: Config) =>
  proprioception.enabled && proprioception.ahaChannel;

/** A courier without recipients: text other than the result is dropped. */
function unheard(log: Logger): Courier {
  return {
    account: SUBAGENT_CHANNEL,
    onUnknown: 'idempotent',
    lifetimeMs: LIFETIME_MS,
    async send({ id }) {
      log.info('output of a subagent without a recipient', { message: id });
      return { nativeIds: [] };
    },
  };
}

// The turn stage of subagents: a turn in their channel is restricted to the terms of its subagent
// and charged to the person who asked, and its answer becomes the result. A later turn of the same
// session, e.g. after an approval, adds to the result.

type SubagentsStageDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly runs: Rows<SubagentRun>;
  readonly service: Pick<SubagentService, 'end' | 'addendum'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly signals: SubagentSignals;
  readonly experience: Pick<Experience, 'subagentEnded'>;
  models(): ModelRegistry;
  maxDepth(): number;
};

const SPAWN = 'spawn';
const GIVEN_UP = t`It failed several times and is set aside (see "nanobot dead list").`;

/** Restricts the agent for the turns of subagents. */
function confinedAgent(agent: Agent, deps: SubagentsStageDeps): Agent {
  return {
    ...agent,
    async *run(input, context, signal) {
      const run = await deps.runs.get(input.chat.chat);
      if (run === undefined) return yield* agent.run(input, context, signal);
      const own = confined(input, run, deps);
      return yield* deps.signals.heard(own, run, (heard) => agent.run(heard, context, signal));
    },
  };
}

function subagentsStage(permits: Permits, deps: SubagentsStageDeps): TurnStage {
  const { runs, service, sessions, log } = deps;

  async function run(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const { seq, message } = turn.messages[0];
    const { chat } = turn.chat;
    const isTask = message.id === taskMessageId(chat);
    const known = await runs.get(chat);
    if (known === undefined || (isTask && known.state === 'cancelled')) {
      return { throughSeq: seq, outbound: [], note: t`the subagent was stopped` };
    }
    const handled = await next(turn, ({ agent }) => ({
      agent: confinedAgent(agent, deps),
      permits,
    }));
    const text = handled.outbound.map(({ markdown }) => markdown).join('\n\n');
    const isForeign = await isTaintedTurn(sessions, turn.session, turn.id);
    if (isTask) {
      const state = handled.ending === 'answered' ? 'done' : 'failed';
      // Before the parent is notified, so that the next subagent profits from it.
      if (handled.ending !== 'stopped') {
        await deps.experience.subagentEnded(known, turn, state === 'done');
      }
      await service.end(chat, { state, result: text, isForeign });
    } else if (text !== '') {
      await service.addendum(chat, turn.id, text, isForeign);
    }
    return { ...handled, outbound: [] };
  }

  return {
    name: 'subagents',
    run: (turn, next) => (turn.chat.channel === SUBAGENT_CHANNEL ? run(turn, next) : next(turn)),
    onPoison(turn) {
      if (turn.chat.channel !== SUBAGENT_CHANNEL) return undefined;
      const { chat: subagent } = turn.chat;
      service
        .end(subagent, { state: 'failed', result: GIVEN_UP, isForeign: false })
        .catch((error) => log.error('end of a subagent not stored', { subagent, error }));
      return [];
    },
  };
}

function confined(input: TurnInput, run: SubagentRun, deps: SubagentsStageDeps): TurnInput {
  const { terms, parent, depth } = run;
  const { tools, rounds, tokens, model } = terms;
  const [first, ...rest] = input.messages;
  const paid = (each: typeof first) => ({
    ...each,
    message: { ...each.message, session: input.session, chat: parent.payingChat },
  });
  const mayStart = depth < Math.min(deps.maxDepth(), terms.depth ?? deps.maxDepth());
  const isVote = run.plan.kind === 'task' && run.plan.isVote === true;
  return {
    ...input,
    messages: [paid(first), ...rest.map(paid)],
    settings: {
      ...input.settings,
      ...(model === undefined ? {} : { model: subagentModel(model, deps.models()) }),
    },
    turnLimits: {
      // Several voters would repeat each effect, so they get no tools.
      mayUse: (tool) =>
        !isVote && (tool !== SPAWN || mayStart) && (tools === undefined || tools.includes(tool)),
      ...(isVote ? { role: 'vote' } : {}),
      ...(rounds === undefined ? {} : { maxRounds: rounds }),
      maxTokens: tokens,
      maxMs: leftMs(run, deps.clock.now()),
    },
  };
}

/** The full model name for the one in the terms. */
function subagentModel(name: string | undefined, models: ModelRegistry): string {
  if (name === undefined || name === 'default') return models.defaultModel;
  return name === 'fast' ? models.fast(models.defaultModel) : name;
}
