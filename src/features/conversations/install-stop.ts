// Installs the chat commands that choose how answers are made and stop them, and /status.

import { MODELS } from '../../agent/models.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { statusCommands, statusReport } from '../../kernel/status.ts';
import { LOCAL_MODELS } from '../local-models/install.ts';
import { JOBS } from '../schedule/install.ts';
import { SUBAGENTS } from '../subagents/install.ts';
import { WORKFLOWS } from '../workflows/index.ts';
import { modelCommands, type StopDeps, stopByButton, stopCommands } from './stop-command.ts';

/** Ends the answer in a chat and what belongs to it. */
export const STOP = port<(chat: ChatRef) => Promise<void>>('stop');

const NO_WORKFLOWS = { stopAll: async () => 0, atWork: async () => [] };

export function install(kernel: Kernel): void {
  const { live, clock, bus, settings, contributed, people, add } = kernel;
  const models = kernel.use(MODELS).current;
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
  add.routes(['GET /api/status'], async () => ({
    'GET /api/status': async () => ({ body: await statusReport(contributed.status()) }),
  }));
  add.command(
    ...modelCommands({ settings, models, turnDefaults, local }),
    ...statusCommands(contributed.status),
    ...stopCommands(stopping),
  );
  const { routes } = people;
  kernel.provide(STOP, (chat) => stopByButton(chat, { ...stopping, routes, clock }));
}
