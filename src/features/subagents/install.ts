// Installs the subagents that turns of the agent start: their rows, their turns, and what people see of them.

import { AGENT } from '../../agent/install.ts';
import { MODELS } from '../../agent/models.ts';
import type { Courier } from '../../kernel/bus/bus.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { createPermits } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { MEMORY } from '../memory/install.ts';
import { knownCost } from '../spending/install.ts';
import { agentsCommands, createHelperPeople, type HelperView } from './agents-commands.ts';
import { createHelperDesk } from './helper-desk.ts';
import { createHelperStarts } from './helper-starts.ts';
import { Calibrator, createExperience, type Experience, Votes } from './learnt.ts';
import { createHelperForgetting, startedFromHelpers } from './personal-data.ts';
import { configuredOf } from './rules/calibration.ts';
import { SUBAGENT_CHANNEL } from './rules/subagent.ts';
import { createHelperSeries, createHelperSignals } from './series.ts';
import { createSpawn } from './spawn.ts';
import { confinedAgent, helperModel, subagentsStage } from './stage.ts';
import { openSubagents, type SubagentRows } from './subagent-rows.ts';
import { createHelperTerms, createProfileBook } from './terms.ts';

export type Subagents = {
  readonly rows: SubagentRows;
  /** For commands. */
  readonly desk: HelperView;
  readonly experience: Experience;
  readonly votes: Votes;
};

export const SUBAGENTS = port<Subagents>('subagents');

const MAX_STATUS_LINES = 5;
/** Subagents are limited where they start; permits of their own keep them off those of people. */
const PLACES = 200;
const LIFETIME_MS = 86_400_000;

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, sessions, measuring, rows, add } = kernel;
  const { current: models } = kernel.use(MODELS);
  const settings = () => live.config.agents.subagents;
  const subagents = openSubagents(rows);
  const { runs } = subagents;
  const desk = createHelperDesk({ subagents, bus, clock, log });
  const votes = new Votes(rows, (vote) =>
    measuring.telemetry.record({ kind: 'vote', at: clock.now(), durationMs: 0, ...vote }),
  );
  const configured = () => configuredOf(live.config);
  const calibration = () => live.config.agents.calibration;
  const calibrator = new Calibrator({ rows, settings: calibration, configured });
  const experience = createExperience({
    ...{ calibrator, runs, sessions, clock, log, configured },
    costOf: (model, usage) => knownCost(live, model, usage),
    modelOf: (name) => helperModel(name, models()),
  });
  const terms = createHelperTerms({
    profiles: createProfileBook(kernel.use(MEMORY).files, () => live.defaults.workspace),
    settings,
    modelOf: async (session) => (await kernel.settings.get(session)).model,
    advice: ({ kind, profile, model }) =>
      calibrator.advice(kind, profile, helperModel(model, models())),
  });
  const starts = createHelperStarts({ runs, desk, terms, clock, settings });
  const series = createHelperSeries({
    ...{ runs, desk, log, votes },
    voting: () => live.config.agents.voting,
    childOf: (...child) => starts.childOf(...child),
  });
  desk.drivenBy((run) => series.drive(run));
  const maxDepth = () => settings().maxDepth;
  const signals = createHelperSignals({
    bus,
    sessions,
    clock,
    log,
    isOn: () => hears(live.config),
  });
  const turns = { runs, desk, sessions, clock, log, models, experience, maxDepth, signals };
  const shown = createHelperPeople({ runs, desk, clock });
  const spawn = createSpawn(starts);
  add.tools(() => [spawn]);
  add.command(...agentsCommands(shown));
  add.personalData(createHelperForgetting(subagents));
  add.startedFrom(SUBAGENT_CHANNEL, startedFromHelpers(subagents));
  add.stillWanted(SUBAGENT_CHANNEL, async (id) => (await runs.get(id))?.state !== 'cancelled');
  add.status(async (session) => [
    ...(await shown.atWork(session)),
    ...(await votes.lines()),
    ...(await calibrator.lines()).slice(0, MAX_STATUS_LINES),
  ]);
  add.task({
    name: 'helpers',
    async run(signal) {
      await desk.recover();
      await series.run(signal);
    },
  });
  add.task({
    name: 'words of helpers',
    run: (signal) => bus.deliver(unheard(log), { signal, concurrency: 1 }),
  });
  const agent = confinedAgent(kernel.use(AGENT), turns);
  add.stage(subagentsStage({ agent, permits: createPermits(PLACES) }, turns));
  kernel.provide(SUBAGENTS, { rows: subagents, desk: shown, experience, votes });
}

const hears = ({ agents: { proprioception } }: Config) =>
  proprioception.enabled && proprioception.ahaChannel;

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
