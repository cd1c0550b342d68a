// Starts a run of a job in the name of its maker, with the maker's current rights, limited to those
// at creation. A job whose maker has lost access is not run.

import type { Revisions } from '../../agent/thread.ts';
import { withoutCode } from '../../kernel/access/admission.ts';
import { narrowed, type Rights, UNRESTRICTED } from '../../kernel/access/rights.ts';
import type { Courier, MessageBus, Turn, TurnResult } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { BACKOFF, BusFullError, DeliveryError } from '../../kernel/message/errors.ts';
import {
  type MessageId,
  messageId,
  type SessionKey,
  sessionOfTurn,
  turnOfAnswer,
} from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  type SystemSender,
  sessionKeyOf,
  writtenNow,
} from '../../kernel/message/message.ts';
import { personNames } from '../../kernel/message/message-limits.ts';
import { OWNER_TURN, type TurnPerson, wrapUntrusted } from '../../kernel/message/untrusted.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { TurnPersonOf } from '../../kernel/turns/origins.ts';
import type { HandledTurn, NextStage, TurnStage } from '../../kernel/turns/stages.ts';
import { newBoundary } from '../../lib/boundary.ts';
import type { Logger } from '../../lib/logger.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { isTaintedTurn } from '../subagents/index.ts';
import { WorkflowError } from '../workflows/index.ts';
import type { Announcer } from './announcer.ts';
import type { GateStanding, LookAtGate } from './gates.ts';
import type { Finding, Look } from './rules/gate.ts';
import {
  HEARTBEAT,
  type Job,
  type JobEnding,
  type JobMaker,
  makerName,
  nameAfter,
  readReport,
  runText,
} from './rules/job.ts';
import type { Run, Scheduler, Started } from './scheduler.ts';
import { JOB_CHANNEL, jobChat } from './settings.ts';

type JobStartDeps = Pick<Kernel, 'clock' | 'judge' | 'origins'> & {
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly personOf: TurnPersonOf;
  /** The rights of an owner in a private chat, which the operator of the machine has too. */
  ownerRights(): Rights;
  placeOf(job: Job): Promise<JobPlace>;
  /** Carries out the check of a job. */
  look: LookAtGate;
  /** Starts the workflow that the job names. @throws WorkflowError */
  startWorkflow(
    run: Pick<Run, 'job' | 'id'>,
    sender: SystemSender & { readonly rights: Rights },
  ): Promise<void>;
  /** The run ended before it started. */
  ended(id: string, run: MessageId, how: 'failed', detail: string): Promise<void>;
};

type Standing =
  | { readonly kind: 'may'; readonly rights: Rights; readonly person: TurnPerson }
  | Extract<Started, { readonly kind: 'nobody' }>;

/** A job makes no jobs, because nothing would bound them. */
const NO_JOBS: Rights = { ...UNRESTRICTED, schedule: 'never', own: ['write'] };

export function createJobStart(deps: JobStartDeps): (run: Run) => Promise<Started> {
  const { bus, announcer, clock, judge, origins, personOf, ownerRights } = deps;

  async function standingOf(maker: JobMaker): Promise<Standing> {
    if (maker.kind === 'operator')
      return { kind: 'may', rights: ownerRights(), person: OWNER_TURN };
    const { sender, chat } = maker;
    const asked = writtenNow({ id: messageId('cron/asked'), chat, sender, text: '' }, clock.now());
    const verdict = withoutCode(await judge(asked));
    if (verdict.kind !== 'admit' || verdict.role === undefined) {
      return {
        kind: 'nobody',
        reason: t`${makerName(maker)}, who created it, no longer has access`,
      };
    }
    const { rights } = await origins(asked);
    const person = await personOf(asked);
    return { kind: 'may', rights: narrowed(maker.rights, rights), person };
  }

  return async ({ job, id, due, chosenAt, isAsked, signal }) => {
    const standing = await standingOf(job.maker);
    if (standing.kind === 'nobody') return standing;
    const { when } = job;
    const isChecked = when !== undefined && !isAsked;
    const looked = isChecked ? await deps.look({ ...job, when }, standing, signal) : OPEN;
    if (looked.kind !== 'open') return looked;
    const { mark, found } = looked;
    if (job.kind === 'say') {
      const place = await deps.placeOf(job);
      const named = place.title === nameAfter(job.text) ? '' : `${place.title}, `;
      const title = due === undefined ? place.title : t`${named}due ${due}`;
      // Quiet hours cover what the person did not ask for: an operator's job may be for somebody
      // else.
      const isForMaker = job.maker.kind === 'person' || job.target.kind === 'last';
      const chosen = chosenAt !== undefined && isForMaker ? { chosenAt } : {};
      const said = { ...place, title, id, markdown: job.text, ...chosen };
      await announcer.announce({ ...said, isForeign: job.isTainted === true });
      return { kind: 'said', mark };
    }
    const isTainted = job.isTainted === true || found?.isForeign === true;
    const sender = senderOf(job, standing, isTainted);
    if (job.kind === 'workflow') {
      try {
        await deps.startWorkflow({ job, id }, sender);
      } catch (error) {
        if (!(error instanceof WorkflowError)) throw error;
        await deps.ended(job.id, id, 'failed', error.message);
      }
      return { kind: 'asked', mark };
    }
    const text = [runText(job, due), ...foundText(found)].join('\n\n');
    const message = writtenNow({ id, chat: jobChat(job.id), sender, text }, clock.now());
    await bus.accept([{ kind: 'queue', message }]);
    return { kind: 'asked', mark };
  };
}

/** Without a check. */
const OPEN: Look = { kind: 'open' };

/** What opened the gate, for the model. */
function foundText(found: Finding | undefined): readonly string[] {
  if (found === undefined) return [];
  const { what, text, isForeign } = found;
  if (isForeign) {
    return [wrapUntrusted(`The check before this run found: ${what}`, [{ text }], newBoundary())];
  }
  return [`[The check before this run found: ${what}]\n${text}`.trimEnd()];
}

function senderOf(job: Job, { rights, person }: GateStanding, isTainted: boolean) {
  const { maker, limits } = job;
  return {
    ...({ kind: 'system', source: 'cron', person } as const),
    rights: narrowed(rights, NO_JOBS),
    ...(maker.kind === 'person' ? { paidBy: personNames(maker) } : {}),
    ...(limits === undefined ? {} : { limits }),
    ...(isTainted ? { isTainted } : {}),
  };
}

// Delivers texts of job conversations to the people they are for. Each job has a chat of its own on
// an internal channel; what arrives there is announced where the job reports.

export type JobPlace = { readonly title: string; readonly chat: ChatRef };

type JobCourierDeps = {
  readonly announcer: Pick<Announcer, 'announce'>;
  readonly sessions: Pick<SessionStore, 'turn'>;
  readonly log: Logger;
  /** Where the job of this chat reports; undefined: it was removed. */
  placeOf(job: string): Promise<JobPlace | undefined>;
};

const LIFETIME_MS = 30 * 86_400_000;
const NOWHERE = { nativeIds: [] };

export function createJobCourier({ announcer, sessions, log, placeOf }: JobCourierDeps): Courier {
  /** A text of a turn may repeat untrusted content that the turn saw. */
  async function isForeign({ id, chat }: OutboundMessage): Promise<boolean> {
    const turn = turnOfAnswer(id);
    if (turn === undefined || sessionOfTurn(turn) !== sessionKeyOf(chat)) return true;
    return isTaintedTurn(sessions, sessionKeyOf(chat), turn);
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
        throw new DeliveryError(t`too many messages are waiting in the chat`, terms);
      }
      return NOWHERE;
    },
  };
}

// The turn stage of schedules: runs of jobs, and announcements of jobs and notices. A run starts
// without the history of earlier runs, so that its cost does not grow; an announcement is recorded
// in the conversation of its chat, so that a person can answer it.

type ScheduleStageDeps = {
  readonly agent: Pick<Revisions, 'remark'> & { reset(session: SessionKey): Promise<void> };
  readonly scheduler: Pick<Scheduler, 'ended'>;
  /** Where answers of a session are sent. */
  answersTo(session: SessionKey, message: InboundMessage): Promise<ChatRef>;
};

const GIVEN_UP = t`It failed several times and is set aside (see "nanobot dead list").`;
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

const ANNOUNCED = t`what you sent to this chat without being asked, as a scheduled job or a notice`;

/** A failure is reported by the scheduler and not as a result. */
function withoutFailure(result: HandledTurn): HandledTurn {
  return result.ending === 'answered' ? result : { ...result, outbound: [] };
}
