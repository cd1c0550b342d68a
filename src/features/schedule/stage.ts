// The turn stage of schedules: runs of jobs, and announcements of jobs and notes. A run starts without
// the history of earlier runs, so that it costs no more than they did; an announcement is recorded in the
// conversation of its chat, so that a person can answer it.

import type { Revisions } from '../../agent/revise.ts';
import type { Turn, TurnResult } from '../../kernel/bus/bus.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage } from '../../kernel/message/message.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import type { HandledTurn, NextStage, TurnStage } from '../../kernel/turns/stages.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { headOf } from '../../lib/text/cut.ts';
import { HEARTBEAT, JOB_CHANNEL, type JobEnding } from './rules/job.ts';
import type { Scheduler } from './scheduler.ts';

export type ScheduleStageDeps = {
  readonly agent: Pick<Revisions, 'remark'> & { reset(session: SessionKey): Promise<void> };
  readonly scheduler: Pick<Scheduler, 'ended'>;
  /** Where what is said in a conversation goes. */
  answersTo(session: SessionKey, message: InboundMessage): Promise<ChatRef>;
};

const GIVEN_UP = 'It failed several times and is set aside (see "nanobot dead list").';
const MAX_DETAIL_CHARS = 300;
const ENDINGS: Readonly<Record<NonNullable<HandledTurn['ending']>, JobEnding>> = {
  answered: 'done',
  stopped: 'stopped',
  failed: 'failed',
};

export function scheduleStage(deps: ScheduleStageDeps) {
  const { agent, scheduler } = deps;

  async function announced(turn: Turn): Promise<TurnResult> {
    const { seq, message } = turn.messages[0];
    const { text, announces, sender } = message;
    const isForeign = sender.kind === 'system' && sender.isTainted === true;
    await agent.remark(turn.session, {
      turnId: turn.id,
      messageId: message.id,
      text: wrapUntrusted(ANNOUNCED, [{ text }], newBoundary()),
      ...(isForeign ? { isForeign } : {}),
    });
    const attachments = announces?.attachments ?? [];
    const chat = await deps.answersTo(turn.session, message);
    const files = attachments.length === 0 ? {} : { attachments };
    return { throughSeq: seq, outbound: [{ chat, markdown: text, ...files }] };
  }

  async function runJob(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const { message } = turn.messages[0];
    const isRun = message.sender.kind === 'system' && message.sender.source === 'cron';
    const isJob = isRun && turn.chat.chat !== HEARTBEAT;
    if (isJob && turn.attempt === 1) await agent.reset(turn.session);
    const result = await next(turn);
    if (!isJob) return withoutFailure(result);
    const how = ENDINGS[result.ending ?? 'stopped'];
    const [first] = result.outbound;
    const isFine = how === 'done' || first === undefined;
    const why = isFine ? [] : [headOf(first.markdown, MAX_DETAIL_CHARS)];
    await scheduler.ended(turn.chat.chat, message.id, how, ...why);
    return withoutFailure(result);
  }

  return {
    name: 'schedule',
    async run(turn, next) {
      if (turn.messages[0].message.announces !== undefined) return announced(turn);
      return turn.chat.channel === JOB_CHANNEL ? runJob(turn, next) : next(turn);
    },
    onPoison: (turn) =>
      turn.chat.channel === JOB_CHANNEL ? [{ chat: turn.chat, markdown: GIVEN_UP }] : undefined,
  } satisfies TurnStage;
}

const ANNOUNCED = 'what you said in this chat by yourself, as a scheduled job or a note';

/** What failed is told where it is counted, not as a result. */
function withoutFailure(result: HandledTurn): HandledTurn {
  return result.ending === 'answered' ? result : { ...result, outbound: [] };
}
