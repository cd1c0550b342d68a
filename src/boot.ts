// The composition root: from configuration to a running gateway. Every service is handed to what is built
// behind it; what a later part has to offer an earlier one, it contributes to a registry (kernel/contributions.ts).

import { hostname } from 'node:os';
import { buildAgent } from './agent/build-agent.ts';
import { buildModels } from './agent/models.ts';
import { createSideModel } from './agent/side-model.ts';
import { buildConversations } from './app/build-conversations.ts';
import { sendableBytes } from './app/build-media.ts';
import { layFoundations } from './app/foundations.ts';
import type { Gateway, GatewayOptions } from './app/gateway.ts';
import { buildArrivals, GatewayService } from './app/gateway-service.ts';
import { channelReports, reportLine } from './channels/configured-channels.ts';
import { buildDecisions } from './features/approvals/build-decisions.ts';
import { buildDoorWatch } from './features/health/channel-watch.ts';
import { buildLocalModels } from './features/local-models/build-local-models.ts';
import { buildLocalOnly } from './features/local-models/build-local-only.ts';
import { openInboxes } from './features/mail-bridge/check-inbox.ts';
import { buildToolServers, toolingOf } from './features/mcp/tool-servers.ts';
import { buildMemory } from './features/memory/build-memory.ts';
import { buildModes } from './features/modes/build-modes.ts';
import { closeDecided } from './features/people/knock.ts';
import { peopleCommands } from './features/people/people-commands.ts';
import { buildReceiving } from './features/people/receiving.ts';
import { buildAutomation } from './features/schedule/build-automation.ts';
import { buildSkills } from './features/skills/catalog.ts';
import { skillsCommands } from './features/skills/skills-commands.ts';
import { buildSpending } from './features/spending/build-spending.ts';
import { spentToday } from './features/spending/spending-commands.ts';
import { steadinessLines } from './features/steadiness/rules/steady-view.ts';
import { buildSubagents } from './features/subagents/build-subagents.ts';
import { buildLeftovers } from './features/subagents/personal-data.ts';
import { buildVoice } from './features/voice/build-voice.ts';
import { buildWorkflows } from './features/workflows/build-workflows.ts';
import { holdHome } from './kernel/bus/store/home-lock.ts';
import { modelCommands } from './kernel/commands/model-commands.ts';
import { configurationLines, statusCommands } from './kernel/commands/status-command.ts';
import { stopByButton, stopCommands } from './kernel/commands/stop-command.ts';
import type { LoadedConfig } from './kernel/config/files/config-file.ts';
import { LiveConfig } from './kernel/config/files/live-config.ts';
import { createChannelManager } from './kernel/delivery/manager.ts';
import { createUndelivered } from './kernel/delivery/undelivered.ts';
import { createDoors } from './kernel/intake/doors.ts';
import { type Kernel, openKernel } from './kernel/kernel.ts';
import type { AccountName } from './kernel/message/account.ts';
import { accountLimitsStage } from './kernel/turns/account-limits.ts';
import { blockedSendersStage } from './kernel/turns/blocked-senders.ts';
import { createDispatcher } from './kernel/turns/dispatcher.ts';
import { editsStage } from './kernel/turns/edits.ts';
import { createTurnStages } from './kernel/turns/stages.ts';
import { createTurnPersonOf } from './kernel/turns/turn-person.ts';
import { buildExec } from './tools/exec/exec.ts';

/** The stages of a turn, from the outside in. */
const STAGES = [
  'workflows',
  'subagents',
  'schedule',
  'approvals',
  'edits',
  'blocked-senders',
  'limits',
  'attachments',
  'voice',
];

/**
 * Takes the home and builds a gateway in it; `run` starts it.
 * @throws HomeLockedError when another gateway holds the home.
 */
export async function boot(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const resources = new AsyncDisposableStack();
  try {
    const { home } = options;
    const startedAt = new Date().toISOString();
    const holder = { pid: process.pid, host: hostname(), startedAt };
    resources.use(await holdHome(home.lock, holder));
    const live = new LiveConfig(loaded, options.env);
    const kernel = openKernel(await layFoundations(live, options, resources));
    return await install(kernel, options, resources);
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

/** Every feature, in this order: the later may use the earlier. */
async function install(
  kernel: Kernel,
  options: GatewayOptions,
  resources: AsyncDisposableStack,
): Promise<Gateway> {
  const { live, clock, log, store, bus, add, channels, people, judge } = kernel;
  const { owners, questions, permits, mediumOf } = kernel;
  const { env, home } = options;
  const shared = { ...kernel, env, home, resources };
  const maxFileBytes = (name: AccountName) => sendableBytes(live, channels.get(name));
  const turnDefaults = () => ({
    thinkingBudget: live.defaults.thinkingBudget,
    queueMode: live.config.queue.mode,
  });
  const { models, forAll, cluster } = await buildModels(shared);
  const only = buildLocalOnly({ ...shared, models });
  const { counted, desk } = await buildSpending(shared, resources);
  const spending = { ...only.guard(counted), ...only.paid(counted) };
  const charged = { ...shared, models: models.current, spending };
  const { tell } = owners;
  const modes = buildModes({ ...charged, tell });
  const local = buildLocalModels({ ...charged, models, forAll, cluster, only });
  add.status(() => steadinessLines(live.config.agents));
  const skills = buildSkills({ home, env, clock, workspace: () => live.defaults.workspace });
  const remembering = buildMemory({ ...shared, maxFileBytes, only });
  const { sessions, files } = remembering;
  const side = createSideModel({ spending, clock, models: models.current });
  const toolServers = buildToolServers(kernel, env);
  const tools = { ...charged, sessions, files, remembering, skills, toolServers, maxFileBytes };
  const executor = buildExec({ live, clock, log, home, env });
  const inboxes = () => openInboxes(live, channels.get);
  const working = { ...tools, side, executor, inboxes, modes: modes.modes, tell };
  const agent = buildAgent(working, models.current, spending);
  for (const kept of [agent.plans, kernel.asked]) add.personalData(kept);
  const agents = { ...tools, agent };
  const subagents = buildSubagents(agents);
  const workflows = buildWorkflows({ ...agents, ...subagents });
  buildLeftovers(shared);
  const deciding = buildDecisions({ ...shared, agent, side, remembering });
  const started = { helpers: subagents.desk, workflows: workflows.desk };
  const automation = buildAutomation({ ...shared, sessions, agent, workflows, started });
  add.status(() => channelReports(live.config.channels, channels).map(reportLine));
  add.status(() => configurationLines(live));
  const withChannel = { ...shared, agent, channel: channels.get };
  buildConversations({ ...withChannel, remembering, asks: deciding.asks, modes: modes.desk });
  const stopping = { bus, ...started, jobs: automation.jobs };
  const chosen = { ...shared, models: models.current, turnDefaults };
  add.command(
    ...skillsCommands(skills),
    ...peopleCommands({ bus, people, mediumOf, notesOf: remembering.desk.notesOf }),
    ...modelCommands({ ...chosen, local }),
    ...statusCommands({ ...chosen, spentToday: (origin) => spentToday(origin, desk) }),
    ...stopCommands(stopping),
  );
  const doorWatch = await buildDoorWatch({ ...shared, isRunning: channels.isRunning, tell });
  const voice = buildVoice({ ...charged, tellOwner: tell }, resources);
  const { receiver, groupTalk } = buildReceiving({
    ...{ ...shared, deciding },
    arrived: doorWatch.arrived,
    fetchAttachments: voice.begin,
  });
  const manager = createChannelManager({
    ...{ directory: channels, bus, receiver, judge, state: store, media: kernel.media, clock, log },
    arrivals: buildArrivals(shared),
    timeZone: () => live.config.sessions.timeZone,
    ...{ alert: owners.alert, tell },
    setAside: createUndelivered({ bus, clock, log, ...owners }),
    onStopped: (name, { reason, remedy }) =>
      options.foreground(live.redact(`${name} stopped: ${reason}. ${remedy}`)),
  });
  const { routes } = people;
  add.stage(editsStage({ ...withChannel, afterAnswer: () => live.config.edits.afterAnswer }));
  add.stage(blockedSendersStage(kernel));
  add.stage(accountLimitsStage(withChannel));
  const dispatcher = createDispatcher({
    ...{ ...withChannel, ...deciding, routes, choices: kernel.settings },
    stages: createTurnStages(STAGES, kernel.contributed.stages()),
    personOf: createTurnPersonOf(people.persons),
    maxAnswerChars: () => live.config.limits.answers.maxChars,
    redact: (text) => live.redact(text),
    settings: () => ({ coalesce: live.config.coalesce, ...turnDefaults() }),
  });
  add.task({ name: 'door watch', run: doorWatch.run });
  add.task({
    name: 'questions',
    run: async (signal) => {
      await Promise.all([questions.run(signal), kernel.buttons.run(signal)]);
    },
  });
  add.task({ name: 'plans', run: (signal) => agent.plans.run(signal) });
  add.task({ name: 'tool servers', run: (signal) => toolServers.run(signal) });
  const elsewhere = { ...people, bus, questions, clock };
  add.task({ name: 'decided elsewhere', run: (signal) => closeDecided(elsewhere, signal) });
  const gateway = new GatewayService(
    {
      ...{ ...shared, models, spending, tell, manager, dispatcher, permits, groupTalk },
      stopIn: (chat) => stopByButton(chat, { ...stopping, routes, clock }),
      doors: createDoors(clock, () => live.config.media.maxFileBytes),
      peers: () => local.cluster?.seen() ?? [],
      tooling: toolingOf(toolServers, agent.missingTools, (text) => live.redact(text)),
    },
    options,
    resources,
  );
  await gateway.listen();
  return gateway;
}
