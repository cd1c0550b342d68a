// `/stop` and the button of the web page for it: ends the answer, the waiting messages and the subagents at work
// for it. Workflows and runs of jobs that were started in the chat are named with the command that ends each of
// them; `/stop all` ends them too.

import type { Clock } from '../../lib/time/clock.ts';
import { CONVERSATION } from '../access/command-access.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { Routes } from '../intake/routes.ts';
import { messageId, type SessionKey } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import { verbatim } from '../message/untrusted.ts';
import { type Command, type CommandTable, commandsOf } from './command.ts';

export type StopDeps = {
  readonly bus: Pick<MessageBus, 'cancel' | 'send'>;
  readonly helpers: {
    /** How many were at work for the conversation. */
    stopAll(session: SessionKey): Promise<number>;
  };
  readonly workflows: {
    stopAll(session: SessionKey): Promise<number>;
    atWork(session: SessionKey): Promise<readonly Named[]>;
  };
  readonly jobs: {
    /** Those of the chat. */
    atWork(chat: ChatRef): Promise<readonly Named[]>;
    stop(id: string): Promise<boolean>;
  };
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
  readonly helpers: number;
  readonly workflows: number;
  readonly jobs: number;
  /** What goes on, each with the command that ends it. */
  readonly left: readonly string[];
};

export const STOP_COMMANDS = {
  stop: {
    summary: 'stop the answer and drop what waits',
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

/** By the button of the web page: says only what is still at work. */
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
  const jobs = await deps.jobs.atWork(chat);
  const stopped = { isAnswer: running, withdrawn, unsent, helpers: helped };
  if (isAll) {
    const ended = await workflows.stopAll(session);
    for (const { id } of jobs) await deps.jobs.stop(id);
    return { ...stopped, workflows: ended, jobs: jobs.length, left: [] };
  }
  const runs = await workflows.atWork(session);
  const left = [
    ...runs.map((run) => `the workflow ${nameOf(run)}: /workflow cancel ${run.id}`),
    ...jobs.map((job) => `the job ${nameOf(job)}: /cron stop ${job.id}`),
  ];
  return { ...stopped, workflows: 0, jobs: 0, left };
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
