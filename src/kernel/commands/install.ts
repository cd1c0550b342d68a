// Installs the chat commands that belong to no single feature: status, model, stop.

import { MODELS } from '../../agent/models.ts';
import { channelReports, reportLine } from '../../channels/configured-channels.ts';
import { LOCAL_MODELS } from '../../features/local-models/install.ts';
import { JOBS } from '../../features/schedule/install.ts';
import { SPENDING_DESK } from '../../features/spending/install.ts';
import { spentToday } from '../../features/spending/spending-commands.ts';
import { SUBAGENTS } from '../../features/subagents/install.ts';
import { WORKFLOWS } from '../../features/workflows/index.ts';
import { type Kernel, port } from '../feature.ts';
import type { ChatRef } from '../message/message.ts';
import { modelCommands } from './model-commands.ts';
import { configurationLines, statusCommands } from './status-command.ts';
import { type StopDeps, stopByButton, stopCommands } from './stop-command.ts';

/** Ends the answer in a chat and what belongs to it. */
export const STOP = port<(chat: ChatRef) => Promise<void>>('stop');

const NO_WORKFLOWS = { stopAll: async () => 0, atWork: async () => [] };

export function install(kernel: Kernel): void {
  const { live, clock, bus, channels, settings, contributed, people, add } = kernel;
  const models = kernel.use(MODELS).current;
  const spending = kernel.use(SPENDING_DESK);
  const local = kernel.use(LOCAL_MODELS);
  const turnDefaults = () => ({
    thinkingBudget: live.defaults.thinkingBudget,
    queueMode: live.config.queue.mode,
  });
  const stopping: StopDeps = {
    bus,
    helpers: kernel.use(SUBAGENTS).desk,
    workflows: kernel.useIfOn(WORKFLOWS)?.desk ?? NO_WORKFLOWS,
    jobs: kernel.use(JOBS),
  };
  add.status(() => channelReports(live.config.channels, channels).map(reportLine));
  add.status(() => configurationLines(live));
  add.command(
    ...modelCommands({ settings, models, turnDefaults, local }),
    ...statusCommands({
      ...{ contributed, bus, settings, models, turnDefaults },
      spentToday: (origin) => spentToday(origin, spending),
    }),
    ...stopCommands(stopping),
  );
  const { routes } = people;
  kernel.provide(STOP, (chat) => stopByButton(chat, { ...stopping, routes, clock }));
}
