// Installs the dispatcher of turns with the kernel's own stages.

import { AGENT } from '../../agent/install.ts';
import { APPROVALS, ASKS } from '../../features/approvals/install.ts';
import { DRAFTS } from '../../features/letters/install.ts';
import { type Kernel, port } from '../feature.ts';
import { createDispatcher, type Dispatcher } from './dispatcher.ts';
import { editsStage } from './edits.ts';
import { createTurnStages } from './stages.ts';
import { accountLimitsStage, blockedSendersStage } from './turn-answers.ts';
import { createTurnPersonOf } from './turn-person.ts';

export const DISPATCHER = port<Dispatcher>('dispatcher');

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, commands, contributed, judge, origins, people, permits } = kernel;
  const { questions, settings, media, add } = kernel;
  const { routes, persons } = people;
  const channel = kernel.channels.get;
  const agent = kernel.use(AGENT);
  const afterAnswer = () => live.config.edits.afterAnswer;
  add.stage(editsStage({ bus, agent, questions, log, commands, channel, afterAnswer }));
  add.stage(blockedSendersStage({ bus, judge, clock, log }));
  add.stage(accountLimitsStage({ log, channel }));
  const dispatcher = createDispatcher({
    ...{ bus, agent, commands, judge, origins, routes, permits, media, clock, log, channel },
    choices: settings,
    approvals: kernel.use(APPROVALS),
    drafts: kernel.use(DRAFTS),
    asks: kernel.use(ASKS),
    stages: createTurnStages(kernel.orders.stages, contributed.stages()),
    personOf: createTurnPersonOf(persons),
    maxAnswerChars: () => live.config.limits.answers.maxChars,
    redact: (text) => live.redact(text),
    settings: () => ({
      coalesce: live.config.coalesce,
      thinkingBudget: live.defaults.thinkingBudget,
      queueMode: live.config.queue.mode,
    }),
  });
  kernel.provide(DISPATCHER, dispatcher);
}
