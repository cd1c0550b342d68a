// Begins a run for whoever made the job: with what they may now, and never more than they might when
// they made it. A job of somebody who may not ask any more is not run.

import { withoutCode } from '../../kernel/access/admission.ts';
import { ALL_RIGHTS, narrowed, type Rights } from '../../kernel/access/rights.ts';
import type { Courier, MessageBus } from '../../kernel/bus/bus.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { BACKOFF, BusFullError, DeliveryError } from '../../kernel/message/errors.ts';
import {
  type MessageId,
  messageId,
  sessionOfTurn,
  turnOfAnswer,
} from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type OutboundMessage,
  type SystemSender,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import { OWNER_TURN, type TurnPerson } from '../../kernel/message/notes.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import type { TurnPersonOf } from '../../kernel/turns/turn-person.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { isForeignTurn } from '../subagents/messages.ts';
import { WorkflowError } from '../workflows/rules/workflow.ts';
import type { Announcer } from './announcer.ts';
import { HEARTBEAT, JOB_CHANNEL, type Job, type JobMaker, jobChat } from './rules/job.ts';
import { readReport, runText } from './rules/job-report.ts';
import type { Run, Started } from './scheduler.ts';

export type JobStartDeps = {
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly clock: Clock;
  readonly judge: Judge;
  readonly origins: Origins;
  readonly personOf: TurnPersonOf;
  /** Of an owner, alone with the agent: the operator of the machine is one. */
  readonly ownerRights: Rights;
  placeOf(job: Job): Promise<JobPlace>;
  /** Begins the workflow that the job names. @throws WorkflowError */
  startWorkflow(run: Run, sender: SystemSender & { readonly rights: Rights }): Promise<void>;
  /** The run is over before it began. */
  ended(id: string, run: MessageId, how: 'failed', detail: string): Promise<void>;
};

type Standing =
  | { readonly kind: 'may'; readonly rights: Rights; readonly person: TurnPerson }
  | Extract<Started, { readonly kind: 'nobody' }>;

/** A job does not make others: nothing would ever bound them. */
const NO_JOBS: Rights = { ...ALL_RIGHTS, schedule: 'never' };

export function createJobStart(deps: JobStartDeps): (run: Run) => Promise<Started> {
  const { bus, announcer, clock, judge, origins, personOf, ownerRights } = deps;

  async function standingOf(maker: JobMaker): Promise<Standing> {
    if (maker.kind === 'operator') return { kind: 'may', rights: ownerRights, person: OWNER_TURN };
    const { sender, chat } = maker;
    const now = clock.now();
    const asked: InboundMessage = {
      ...{ id: messageId('cron/asked'), chat, sender, addressing: 'direct', text: '' },
      ...{ sentAt: now, receivedAt: now },
    };
    const verdict = withoutCode(await judge(asked));
    if (verdict.kind !== 'admit' || verdict.role === undefined) {
      return {
        kind: 'nobody',
        reason: `${maker.name || maker.id}, who made it, is not let in any more`,
      };
    }
    const { rights } = await origins(asked);
    const person = await personOf(asked);
    return { kind: 'may', rights: narrowed(maker.rights, rights), person };
  }

  return async ({ job, id, due, chosenAt }) => {
    const standing = await standingOf(job.maker);
    if (standing.kind === 'nobody') return standing;
    if (job.kind === 'say') {
      const late = due === undefined ? '' : `(due ${due})\n\n`;
      const place = await deps.placeOf(job);
      // Quiet hours are for what a person did not ask for: a job of the operator may be for somebody else.
      const isForMaker = job.maker.kind === 'person' || job.target.kind === 'last';
      const chosen = chosenAt !== undefined && isForMaker ? { chosenAt } : {};
      const said = { ...place, id, markdown: late + job.text, ...chosen };
      await announcer.announce({ ...said, isForeign: job.isTainted === true });
      return { kind: 'said' };
    }
    const sender = senderOf(job, standing.rights, standing.person);
    if (job.kind === 'workflow') {
      try {
        await deps.startWorkflow({ job, id }, sender);
      } catch (error) {
        if (!(error instanceof WorkflowError)) throw error;
        await deps.ended(job.id, id, 'failed', error.message);
      }
      return { kind: 'asked' };
    }
    const now = clock.now();
    const message: InboundMessage = {
      id,
      chat: jobChat(job.id),
      sender,
      addressing: 'direct',
      text: runText(job, due),
      sentAt: now,
      receivedAt: now,
    };
    await bus.accept([{ kind: 'queue', message }]);
    return { kind: 'asked' };
  };
}

function senderOf(job: Job, rights: Rights, person: TurnPerson) {
  const { maker, limits, isTainted } = job;
  return {
    ...({ kind: 'system', source: 'cron', person } as const),
    rights: narrowed(rights, NO_JOBS),
    ...(maker.kind === 'person' ? { paidBy: paidBy(maker) } : {}),
    ...(limits === undefined ? {} : { limits }),
    ...(isTainted === undefined ? {} : { isTainted }),
  };
}

function paidBy({ sender, chat }: Extract<JobMaker, { readonly kind: 'person' }>) {
  const [, ...others] = idsOf(sender);
  const name = (id: string) => `${chat.channel}:${id}`;
  return [name(sender.id), ...others.map(name)] as const;
}

// Carries what is said in the conversations of jobs to the people it is for. Each job has a chat of its
// own on a channel that nobody else sees; what arrives there is announced where the job reports.

export type JobPlace = { readonly title: string; readonly chat: ChatRef };

export type JobCourierDeps = {
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly log: Logger;
  /** Where the job of this chat reports; undefined: it was removed. */
  placeOf(job: string): Promise<JobPlace | undefined>;
};

const LIFETIME_MS = 30 * 86_400_000;
const NOWHERE = { nativeIds: [] };

export function createJobCourier({ announcer, sessions, log, placeOf }: JobCourierDeps): Courier {
  /** What a turn was shown of others may stand in what it says. */
  async function isForeign({ id, chat }: OutboundMessage): Promise<boolean> {
    const turn = turnOfAnswer(id);
    if (turn === undefined || sessionOfTurn(turn) !== sessionKeyOf(chat)) return true;
    return isForeignTurn(sessions, sessionKeyOf(chat), turn);
  }

  return {
    account: JOB_CHANNEL,
    onUnknown: 'idempotent',
    lifetimeMs: LIFETIME_MS,
    async send(message) {
      const { id, chat, markdown, attachments = [] } = message;
      const place = await placeOf(chat.chat);
      const report = readReport(markdown, chat.chat === HEARTBEAT);
      const isEmpty = report.kind === 'silent' && attachments.length === 0;
      if (place === undefined || isEmpty) {
        log.info('job has nothing to report', { job: chat.chat, removed: place === undefined });
        return NOWHERE;
      }
      const text = report.kind === 'silent' ? '' : report.text;
      const files = attachments.length === 0 ? {} : { attachments };
      const announcement = { ...place, id, markdown: text, ...files };
      try {
        await announcer.announce({ ...announcement, isForeign: await isForeign(message) });
      } catch (error) {
        if (!(error instanceof BusFullError)) throw error;
        const terms = { certainty: 'not_sent', remedy: BACKOFF, cause: error } as const;
        throw new DeliveryError('too much waits in the chat', terms);
      }
      return NOWHERE;
    },
  };
}
