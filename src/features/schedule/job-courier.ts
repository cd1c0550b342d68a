// Carries what is said in the conversations of jobs to the people it is for. Each job has a chat of its
// own on a channel that nobody else sees; what arrives there is announced where the job reports.

import type { Courier } from '../../kernel/bus/bus.ts';
import { BACKOFF, BusFullError, DeliveryError } from '../../kernel/message/errors.ts';
import { sessionOfTurn, turnOfAnswer } from '../../kernel/message/ids.ts';
import { type ChatRef, type OutboundMessage, sessionKeyOf } from '../../kernel/message/message.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import type { Logger } from '../../lib/logger.ts';
import { isForeignTurn } from '../subagents/messages.ts';
import type { Announcer } from './announcer.ts';
import { HEARTBEAT, JOB_CHANNEL } from './rules/job.ts';
import { readReport } from './rules/job-report.ts';

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
