// From configuration to a running object graph: the one place that creates services and knows which
// implementation stands behind which contract.

import { hostname } from 'node:os';
import { buildAgent } from '../agent/build-agent.ts';
import { buildModels, type ModelCare } from '../agent/build-models.ts';
import { createSideModel } from '../agent/side-model.ts';
import { buildDecisions } from '../features/approvals/build-decisions.ts';
import { buildDoorWatch } from '../features/health/build-door-watch.ts';
import { openInboxes } from '../features/mail-bridge/build-inboxes.ts';
import { buildToolServers, toolingOf } from '../features/mcp/build-tool-servers.ts';
import { buildMemory } from '../features/memory/build-memory.ts';
import { buildModes } from '../features/modes/build-modes.ts';
import { buildPeople } from '../features/people/build-people.ts';
import { buildReceiving } from '../features/people/build-receiving.ts';
import { type Automation, buildAutomation } from '../features/schedule/build-automation.ts';
import type { TellOwner } from '../features/schedule/owner-notes.ts';
import { buildSkills } from '../features/skills/build-skills.ts';
import { buildSpending } from '../features/spending/build-spending.ts';
import { buildVoice } from '../features/voice/build-voice.ts';
import { holdHome } from '../kernel/bus/store/home-lock.ts';
import { stopByButton } from '../kernel/commands/stop-command.ts';
import type { LoadedConfig } from '../kernel/config/files/config-file.ts';
import { LiveConfig } from '../kernel/config/files/live-config.ts';
import { createChannelManager } from '../kernel/delivery/manager.ts';
import { createUndelivered } from '../kernel/delivery/undelivered.ts';
import { createDoors, policyOf } from '../kernel/intake/doors.ts';
import { createJudge } from '../kernel/intake/judge.ts';
import type { AccountName } from '../kernel/message/account.ts';
import { closeDecided } from '../kernel/questions/decided-elsewhere.ts';
import { createDispatcher, type DispatcherDeps } from '../kernel/turns/dispatcher.ts';
import { createSessionSettings } from '../kernel/turns/session-settings.ts';
import { withoutBlocked } from '../kernel/turns/shut-out.ts';
import { createTurnPersonOf } from '../kernel/turns/turn-person.ts';
import { withLimits } from '../kernel/turns/turns-with-limits.ts';
import { createPermits } from '../lib/async.ts';
import { buildExec } from '../tools/exec/exec.ts';
import { createAlerts } from './alerts.ts';
import { buildArrivals } from './build-arrivals.ts';
import { buildAsides } from './build-asides.ts';
import { buildCommands } from './build-commands.ts';
import { sendableBytes } from './build-media.ts';
import { buildOwnTurns } from './build-own-turns.ts';
import { type Foundations, layFoundations } from './foundations.ts';
import type { Gateway, GatewayOptions } from './gateway.ts';
import { GatewayService } from './gateway-service.ts';
import { createOwnerDoor } from './owner-door.ts';
import { PAIRING_SCOPE } from './state.ts';

export type { ChannelReport, Gateway, GatewayOptions } from './gateway.ts';

/**
 * Takes the home and builds a gateway in it; `run` starts it.
 * @throws HomeLockedError when another gateway holds the home.
 */
export async function composeGateway(
  loaded: LoadedConfig,
  options: GatewayOptions,
): Promise<Gateway> {
  const resources = new AsyncDisposableStack();
  try {
    const { home } = options;
    const startedAt = new Date().toISOString();
    const holder = { pid: process.pid, host: hostname(), startedAt };
    resources.use(await holdHome(home.lock, holder));
    const foundations = await layFoundations(
      new LiveConfig(loaded, options.env),
      options,
      resources,
    );
    return await build(foundations, options, resources);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

async function build(
  foundations: Foundations,
  options: GatewayOptions,
  resources: AsyncDisposableStack,
): Promise<Gateway> {
  const { live, clock, log, store, bus } = foundations;
  const { env, home } = options;
  const care: ModelCare = () => ({ spending, ownerChat, tell, routes: people.routes });
  const { models, local } = await buildModels({ ...foundations, env }, care);
  const maxFileBytes = (name: AccountName) => sendableBytes(live, manager.channel(name));
  const workspace = () => live.defaults.workspace;
  const skills = buildSkills({ home, env, clock, workspace });
  const executor = buildExec({ live, clock, log, home, env });
  const schedules = () => automation.schedules;
  const kept = () => [
    agent.plans,
    foundations.asked,
    ...[deciding.asks, deciding.approvals, deciding.standing, deciding.drafts],
    own.workflows.runs,
    modes.traces,
  ];
  const forgetful = () => [...kept(), automation.forgetting];
  const built = { maxFileBytes, persons: () => persons, questions: () => questions };
  const later = { ...built, forgetful, only: local.only };
  const remembering = buildMemory({ ...foundations, home, resources, ...later });
  const { sessions, files } = remembering;
  const channelOf = (name: AccountName) => manager.channel(name);
  const inboxes = () => openInboxes(live, channelOf);
  const helpers = () => own.subagents.helpers;
  const workflows = () => own.workflows.workflows;
  const asked = { schedules, inboxes, helpers, workflows };
  const shared = { skills, executor, maxFileBytes, channelOf, ...asked };
  const parts = { ...foundations, sessions, remembering, env, resources, ...shared };
  const ownerChat = () => ownerDoor.chat(isThere);
  const asking = { ownerChat, deciding: () => deciding, persons: () => persons };
  const { counted, desk } = await buildSpending(foundations, asking, resources);
  const spending = { ...local.only.guard(counted), ...local.only.paid(counted) };
  const side = createSideModel({ spending, clock, models: models.current });
  const toolServers = buildToolServers(foundations, env);
  const settings = createSessionSettings(store.scope('session-settings'));
  const sharing = { settings, spending, models: models.current, home };
  const modes = buildModes({ ...foundations, ...sharing, tell: (text) => tell(text) });
  const made = { side, toolServers, modes: modes.modes, tell: (text: string) => tell(text) };
  const agent = buildAgent({ ...parts, ...made }, models.current, spending);
  const owning = { ...parts, files, agent, spending, settings, models: models.current };
  const own = buildOwnTurns(owning, () => ({ people, deciding, automation }));
  const state = store.scope(PAIRING_SCOPE);
  const people = buildPeople(foundations);
  const { pairing, persons } = people;
  const turnDefaults = () => ({
    thinkingBudget: live.defaults.thinkingBudget,
    queueMode: live.config.queue.mode,
  });
  const commanded = { ...foundations, ...asking, settings, people, desk, skills, agent, home };
  const commands = buildCommands({
    ...{ ...commanded, remembering, own, modes, local, channelOf, turnDefaults },
    models: models.current,
    jobs: () => automation.jobs,
    channelLines: () => gateway.channelLines(),
  });
  const judge = createJudge({ persons, policy: (account) => policyOf(account, live.config) });
  const chosen = () => live.config.notices.channel;
  const ownerDoor = createOwnerDoor({ state, pairing, chosen });
  const noticeChat = (about?: AccountName) => ownerDoor.notices(isThere, about);
  const isRunning = (name: AccountName) => manager.status(name)?.kind === 'running';
  const isThere = (name: AccountName) => (manager.status(name)?.kind ?? 'stopped') !== 'stopped';
  const alert = createAlerts({ bus, ownerDoor, clock, log, isRunning });
  const tell: TellOwner = (text, about) => automation.tell(text, about);
  const decided = { ...foundations, people, judge, ownerDoor, agent, desk, side, remembering };
  const deciding = buildDecisions({ ...decided, manager: () => manager });
  const { questions, approvals, origins, drafts, asks, mails } = deciding;
  const { ownerChat: reports } = deciding;
  const { startWorkflow, checkWorkflow } = own.workflows;
  const started = { startWorkflow, checkWorkflow };
  const automated = { ...foundations, people, judge, origins, agent, alert, ...started };
  const automation: Automation = buildAutomation({ ...automated, noticeChat, ownerChat: reports });
  const { receiver, groupTalk } = buildReceiving({
    ...{ ...foundations, people, judge, deciding, commands, ownerDoor, noticeChat, tell },
    arrived: (message) => doorWatch.arrived(message),
    fetchAttachments: (message) => voice.begin(message),
  });
  const manager = createChannelManager({
    bus,
    receiver,
    judge,
    state: store,
    media: foundations.media,
    arrivals: buildArrivals({ ...foundations, judge }),
    clock,
    log,
    timeZone: () => live.config.sessions.timeZone,
    alert,
    tell,
    setAside: createUndelivered({ bus, clock, log, noticeChat, alert, tell }),
    onStopped: (name, { reason, remedy }) =>
      options.foreground(live.redact(`${name} stopped: ${reason}. ${remedy}`)),
  });
  const doorWatch = await buildDoorWatch({ ...foundations, people, isRunning, tell });
  const permits = createPermits(live.defaults.maxConcurrentChats);
  const { channel } = manager;
  const voiced = { ...foundations, judge, spending, env: options.env, channel, tellOwner: tell };
  const voice = buildVoice(voiced, resources);
  const dispatching: DispatcherDeps = {
    agent,
    personOf: createTurnPersonOf(persons),
    routes: people.routes,
    bus,
    commands,
    judge,
    ...{ origins, approvals, drafts, asks },
    permits,
    clock,
    log,
    channel,
    media: foundations.media,
    maxAnswerChars: () => live.config.limits.answers.maxChars,
    redact: (text) => live.redact(text),
    settings: () => ({ coalesce: live.config.coalesce, ...turnDefaults() }),
  };
  const dispatcher = createDispatcher(dispatching);
  const asided = { live, bus, agent, questions, log, channel };
  const aside = buildAsides(
    withoutBlocked(withLimits(voice.with(dispatcher), { log, channel }), voiced),
    asided,
  );
  const gateway = new GatewayService(
    {
      ...foundations,
      models,
      spending,
      tell,
      manager,
      dispatcher: own.with(automation.with(aside), dispatching),
      permits,
      people,
      stopIn: (chat) => stopByButton(chat, { ...commands, routes: people.routes, clock }),
      doors: createDoors(clock, () => live.config.media.maxFileBytes),
      groupTalk,
      questions,
      peers: () => local.desk.cluster?.seen() ?? [],
      tooling: toolingOf(toolServers, agent.missingTools, (text) => live.redact(text)),
      background: [
        { name: 'door watch', run: (signal) => doorWatch.run(signal) },
        ...automation.background,
        ...own.background,
        ...local.background,
        ...modes.background,
        { name: 'questions', run: (signal) => questions.run(signal) },
        { name: 'plans', run: (signal) => agent.plans.run(signal) },
        { name: 'mails', run: (signal) => mails.run(signal) },
        { name: 'index', run: (signal) => remembering.indexing.run(signal) },
        { name: 'forgetting', run: (signal) => remembering.forgetting.run(signal) },
        deciding.thinkOver,
        { name: 'leftovers', run: (signal) => remembering.leftovers.run(signal) },
        { name: 'tool servers', run: (signal) => toolServers.run(signal) },
        {
          name: 'decided elsewhere',
          run: (signal) => closeDecided({ ...people, bus, questions, clock }, signal),
        },
      ],
    },
    options,
    resources,
  );
  await gateway.listen();
  return gateway;
}
