// Installs the chat commands that set how answers are made, `/status`, and `/stop`.
//
// `/stop` and the stop button of the web page end the answer, the waiting messages and the
// subagents of the conversation. Workflows and job runs that were started in the chat are listed
// with the command that ends each; `/stop all` ends them too.

import { MODELS } from '../../agent/models.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import {
  CONVERSATION,
  type Command,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { statusCommands, statusReport } from '../../kernel/status.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { LOCAL_MODELS } from '../local-models/index.ts';
import { JOBS } from '../schedule/index.ts';
import { SUBAGENTS, type Subagents } from '../subagents/index.ts';
import { WORKFLOWS, type Workflows } from '../workflows/index.ts';
import { modelCommands } from './model-commands.ts';

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
    subagentService: kernel.use(SUBAGENTS).service,
    workflows: kernel.useIfOn(WORKFLOWS)?.service ?? NO_WORKFLOWS,
    jobs: kernel.use(JOBS),
  };
  add.routes(['GET /api/status'], async () => ({
    'GET /api/status': async () => ({ body: await statusReport(contributed.status(), clock) }),
  }));
  add.command(
    ...modelCommands({ settings, models, turnDefaults, local }),
    ...statusCommands(contributed.status, clock),
    ...stopCommands(stopping),
  );
  const { routes } = people;
  kernel.provide(STOP, (chat) => stopByButton(chat, { ...stopping, routes, clock }));
}

type StopDeps = {
  readonly bus: Pick<MessageBus, 'cancel' | 'send'>;
  readonly subagentService: Pick<Subagents['service'], 'stopAll'>;
  readonly workflows: Pick<Workflows['service'], 'stopAll' | 'atWork'>;
  readonly jobs: Pick<NonNullable<(typeof JOBS)['of']>, 'atWork' | 'stop'>;
};

type Stop = {
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly isAll: boolean;
};

type Named = { readonly id: string; readonly name: string };

type Stopped = {
  readonly isAnswer: boolean;
  readonly withdrawn: number;
  readonly unsent: number;
  readonly subagents: number;
  readonly workflows: number;
  readonly jobs: number;
  /** What is still running, each with the command that ends it. */
  readonly left: readonly string[];
};

export const STOP_COMMANDS = {
  stop: {
    summary: t`stop the answer and drop waiting messages`,
    usage: '/stop [all]',
    access: CONVERSATION,
    timing: 'immediate',
  },
} satisfies CommandTable;

export function stopCommands(deps: StopDeps): readonly Command[] {
  return commandsOf(STOP_COMMANDS, {
    async stop({ session, message: { chat } }, argument) {
      const isAll = argument.trim().toLowerCase() === 'all';
      return stoppedWords(await stop({ session, chat, isAll }, deps));
    },
  });
}

/** For the stop button of the web page: names only what is still running. */
async function stopByButton(
  chat: ChatRef,
  deps: StopDeps & { readonly routes: Pick<Routes, 'sessionOf'>; readonly clock: Clock },
): Promise<void> {
  const session = await deps.routes.sessionOf(chat);
  const { left } = await stop({ session, chat, isAll: false }, deps);
  if (left.length === 0) return;
  const id = messageId(`stop/${session}/${deps.clock.now()}`);
  await deps.bus.send({ id, chat, markdown: leftWords(left) });
}

async function stop({ session, chat, isAll }: Stop, deps: StopDeps): Promise<Stopped> {
  const { bus, subagentService, workflows } = deps;
  const { running, withdrawn, unsent } = await bus.cancel(session, 'stopped by /stop');
  const helped = await subagentService.stopAll(session);
  const jobs = await deps.jobs.atWork(chat);
  const stopped = { isAnswer: running, withdrawn, unsent, subagents: helped };
  if (isAll) {
    const ended = await workflows.stopAll(session);
    for (const { id } of jobs) await deps.jobs.stop(id);
    return { ...stopped, workflows: ended, jobs: jobs.length, left: [] };
  }
  const runs = await workflows.atWork(session);
  const left = [
    ...runs.map((run) => t`the workflow ${nameOf(run)}: /workflow cancel ${run.id}`),
    ...jobs.map((job) => t`the job ${nameOf(job)}: /cron stop ${job.id}`),
  ];
  return { ...stopped, workflows: 0, jobs: 0, left };
}

const nameOf = ({ id, name }: Named) => `${verbatim(name)} (${id})`;

function stoppedWords(stopped: Stopped): string {
  const { isAnswer, left } = stopped;
  const parts = [
    some(stopped.withdrawn, (n) =>
      ngettext(msgid`${n} waiting message dropped.`, `${n} waiting messages dropped.`, n),
    ),
    some(stopped.unsent, (n) =>
      ngettext(msgid`${n} answer no longer sent.`, `${n} answers no longer sent.`, n),
    ),
    some(stopped.subagents, (n) =>
      ngettext(msgid`${n} subagent stopped with it.`, `${n} subagents stopped with it.`, n),
    ),
    some(stopped.workflows, (n) =>
      ngettext(msgid`${n} workflow stopped.`, `${n} workflows stopped.`, n),
    ),
    some(stopped.jobs, (n) =>
      ngettext(msgid`${n} run of a job stopped.`, `${n} runs of jobs stopped.`, n),
    ),
  ].flatMap((part) => part ?? []);
  const rest = left.length === 0 ? '' : `\n${leftWords(left)}`;
  if (isAnswer || parts.length > 0) return [t`Stopped.`, ...parts].join(' ') + rest;
  return left.length === 0 ? t`Nothing is running.` : t`No answer is running.${rest}`;
}

const leftWords = (left: readonly string[]) =>
  [t`Still running:`, ...left.map((line) => `- ${line}`), t`/stop all stops these too.`].join('\n');

const some = (count: number, words: (count: number) => string) =>
  count === 0 ? undefined : words(count);
