// Notices about strangers of whom was decided by other means than the notice itself: a command, the
// command line, another owner. Nobody has to decide below them any more, and they say so.

import type { Decisions } from '../../features/people/decisions.ts';
import {
  decidedElsewhere,
  STRANGER_SUBJECT,
  strangerQuestion,
} from '../../features/people/stranger-answers.ts';
import type { Strangers } from '../../features/people/strangers.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { MessageBus } from '../bus/bus.ts';
import { type OpenQuestion, textOf } from './question-rows.ts';
import type { Questions } from './questions.ts';

export type DecidedElsewhereDeps = {
  readonly bus: Pick<MessageBus, 'outbound'>;
  readonly questions: Pick<Questions, 'open' | 'withdraw'>;
  readonly strangers: Pick<Strangers, 'list'>;
  readonly decisions: Pick<Decisions, 'find'>;
  readonly clock: Clock;
};

/** The command line decides in a process of its own. */
const LOOK_MS = 2000;
const SUBJECT = `${STRANGER_SUBJECT}:`;

export async function closeDecided(deps: DecidedElsewhereDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await closeThose(deps);
    await deps.clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
}

async function closeThose(deps: DecidedElsewhereDeps): Promise<void> {
  const open = (await deps.questions.open()).filter(({ subject }) => subject.startsWith(SUBJECT));
  if (open.length === 0) return;
  // Read behind the questions: who is asked about waits already.
  const waiting = new Set((await deps.strangers.list()).map(strangerQuestion));
  for (const question of open) {
    if (waiting.has(question.id)) continue;
    // A notice still on its way would keep its buttons.
    const sent = await deps.bus.outbound(textOf(question));
    if (sent?.parts.length === 0) continue;
    await deps.questions.withdraw(question.id, decidedElsewhere(await outcomeOf(question, deps)));
  }
}

async function outcomeOf(
  { subject }: OpenQuestion,
  { decisions }: DecidedElsewhereDeps,
): Promise<string> {
  const [channel, ...rest] = subject.slice(SUBJECT.length).split(':');
  const [found] = await decisions.find(rest.join(':'), channel);
  if (found?.role === 'blocked') return 'they are blocked.';
  return found?.role === undefined ? 'nothing is left to do here.' : 'they are let in.';
}
