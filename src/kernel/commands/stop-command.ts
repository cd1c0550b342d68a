// `/stop` and the page's button for it: ends the answer, what waits and the helpers at work for it. What
// goes on by itself, workflows and runs of jobs begun in the chat, is named with what ends it, or is ended
// too by `/stop all`.

import { jobChat } from '../../features/schedule/rules/job.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Routes } from '../intake/routes.ts';
import { messageId, type SessionKey } from '../message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../message/message.ts';
import { verbatim } from '../message/untrusted.ts';
import type { Command, CommandDeps } from './command.ts';

type StopDeps = Pick<CommandDeps, 'bus' | 'helpers' | 'workflows' | 'jobs'>;

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
  readonly helpers: number;
  readonly workflows: number;
  readonly jobs: number;
  /** What goes on, each with the command that ends it. */
  readonly left: readonly string[];
};

export const STOP_COMMAND: Command = {
  name: 'stop',
  summary: 'stop the answer and drop what waits',
  usage: '/stop [all]',
  timing: 'immediate',
  run: async ({ session, message: { chat } }, argument, deps) => {
    const isAll = argument.trim().toLowerCase() === 'all';
    return stoppedWords(await stop({ session, chat, isAll }, deps));
  },
};

/** By the button of the page: only what goes on is worth a word. */
export async function stopByButton(
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
  const { bus, helpers, workflows } = deps;
  const { running, withdrawn, unsent } = await bus.cancel(session, 'stopped by /stop');
  const helped = await helpers.stopAll(session);
  const jobs = await deps.jobs.desk.atWork(chat);
  const stopped = { isAnswer: running, withdrawn, unsent, helpers: helped };
  if (isAll) {
    const ended = await workflows.stopAll(session);
    for (const { id } of jobs) await stopJob(id, deps);
    return { ...stopped, workflows: ended, jobs: jobs.length, left: [] };
  }
  const runs = await workflows.atWork(session);
  const left = [
    ...runs.map((run) => `the workflow ${nameOf(run)}: /workflow cancel ${run.id}`),
    ...jobs.map((job) => `the job ${nameOf(job)}: /cron stop ${job.id}`),
  ];
  return { ...stopped, workflows: 0, jobs: 0, left };
}

/** With all that its run has started; whether there was anything. */
export async function stopJob(
  id: string,
  { helpers, workflows, jobs }: Pick<StopDeps, 'helpers' | 'workflows' | 'jobs'>,
): Promise<boolean> {
  const session = sessionKeyOf(jobChat(id));
  const wasAtWork = await jobs.desk.endRun(id);
  const helped = await helpers.stopAll(session);
  const ended = await workflows.stopAll(session);
  return wasAtWork || helped + ended > 0;
}

const nameOf = ({ id, name }: Named) => `${verbatim(name)} (${id})`;

function stoppedWords(stopped: Stopped): string {
  const { isAnswer, left } = stopped;
  const parts = [
    counted(stopped.withdrawn, 'waiting message', 'dropped'),
    counted(stopped.unsent, 'answer', 'not sent any further'),
    counted(stopped.helpers, 'helper', 'ended with it'),
    counted(stopped.workflows, 'workflow', 'ended'),
    counted(stopped.jobs, 'run of a job', 'ended', 'runs of jobs'),
  ].flatMap((part) => part ?? []);
  const rest = left.length === 0 ? '' : `\n${leftWords(left)}`;
  if (isAnswer || parts.length > 0) return ['Stopped.', ...parts].join(' ') + rest;
  return left.length === 0 ? 'Nothing is running.' : `No answer is on its way.${rest}`;
}

const leftWords = (left: readonly string[]) =>
  ['Still at work:', ...left.map((line) => `- ${line}`), '/stop all ends these too.'].join('\n');

function counted(count: number, thing: string, what: string, several = `${thing}s`) {
  return count === 0 ? undefined : `${count} ${count === 1 ? thing : several} ${what}.`;
}
