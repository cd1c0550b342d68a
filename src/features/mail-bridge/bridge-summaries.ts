// Has mails summarised before an owner is shown them: a few at a time, each once, the words on disk
// before anybody sees them. Where none can be had in time the mail is shown without them.

import type { SideModel } from '../../agent/side-model.ts';
import { SpendingRefusedError } from '../../agent/spending.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { createPermits, within } from '../../lib/async.ts';
import { newBoundary } from '../../lib/boundary.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';
import { type BridgedMail, type BridgeRows, changeMail } from './bridge-rows.ts';
import {
  cleanSummary,
  type MailSummary,
  SUMMARY_TOKENS,
  type SummaryAsk,
  type SummaryDue,
  type SummaryOutcome,
  summaryPrompt,
} from './rules/summary.ts';

const AT_ONCE = 3;
/** So long an owner waits for a mail that could be shown without. */
const LONGEST_MS = 30_000;

export type MailToSummarise = Omit<SummaryAsk, 'language'> & {
  readonly payer: Payer;
  /** Where it will be read. */
  readonly readIn: ChatRef;
};

/** The model, as narrow as it is needed here; without tools. */
export type Summarise = (mail: MailToSummarise, signal: AbortSignal) => Promise<SummaryOutcome>;

export type BridgeSummariesDeps = {
  readonly rows: BridgeRows;
  readonly clock: Clock;
  readonly log: Logger;
  readonly summarise: Summarise;
  ownerChat(): Promise<ChatRef>;
  changed(): void;
};

type Wanted = BridgedMail & { readonly summary: SummaryDue };

export type BridgeSummaries = ReturnType<typeof createBridgeSummaries>;

export function createBridgeSummaries(deps: BridgeSummariesDeps) {
  const { rows, clock, log, summarise, ownerChat, changed } = deps;
  const permits = createPermits(AT_ONCE);
  const begun = new Set<string>();

  async function made(mail: Wanted, signal: AbortSignal): Promise<SummaryOutcome> {
    const { id, chat, note, summary } = mail;
    const permit = await permits.acquire(signal);
    try {
      const { text, sender } = summary;
      const payer: Payer = { chat, sender, isUnseen: true };
      const { subject, address } = note;
      const ask = { text, subject, address, payer, readIn: await ownerChat() };
      const asking = (inner: AbortSignal) => summarise(ask, inner);
      return await within({ clock, ms: LONGEST_MS, signal }, asking, tooLate);
    } catch (error) {
      signal.throwIfAborted();
      log.warn('mail not summarised', { messageId: id, error });
      return { kind: 'missing', because: 'failed' };
    } finally {
      permit[Symbol.dispose]();
    }
  }

  /** Stored by the desk, whose failures are tried again with growing waits. */
  const ready = new Map<string, MailSummary>();

  async function prepare(mail: Wanted, signal: AbortSignal) {
    try {
      ready.set(mail.id, await made(mail, signal));
    } finally {
      begun.delete(mail.id);
      changed();
    }
  }

  async function wanted(id: MessageId): Promise<Wanted | undefined> {
    await changeMail(rows, id, (mail) =>
      mail.summary?.kind === 'due'
        ? { ...mail, summary: { ...mail.summary, kind: 'wanted' } }
        : undefined,
    );
    const mail = await rows.mails.get(id);
    const summary = mail?.summary;
    return mail && summary?.kind === 'wanted' ? { ...mail, summary } : undefined;
  }

  return {
    /**
     * Begins the summary in the background, or stores the one that was made; one that is under way is
     * left alone.
     * @throws StoreError
     */
    async advance({ id }: BridgedMail, signal: AbortSignal): Promise<void> {
      const summary = ready.get(id);
      if (summary !== undefined) {
        await changeMail(rows, id, (mail) => ({ ...mail, summary }));
        ready.delete(id);
        return changed();
      }
      if (begun.has(id)) return;
      const mail = await wanted(id);
      if (mail === undefined) return;
      begun.add(id);
      // It ends by the signal only: nothing was made then, and the next process begins anew.
      prepare(mail, signal).catch(() => undefined);
    },
  };
}

const tooLate = () => new Error('no summary in time');

// Summarises mails for the owner who answers them: one call of the cheap model, without tools, paid by
// the mail's own thread. What comes back is cut to plain words by core.

/** @throws ProviderError, the signal's reason */
export async function summariseMail(
  side: SideModel,
  { payer, ...ask }: SummaryAsk & { readonly payer: Payer },
  signal: AbortSignal,
): Promise<SummaryOutcome> {
  const prompt = summaryPrompt(ask, newBoundary());
  const call = { role: 'mail_summary', payer, ...prompt, maxTokens: SUMMARY_TOKENS } as const;
  try {
    const text = cleanSummary(await side.complete(call, signal), `${ask.subject}\n${ask.text}`);
    return text === undefined ? { kind: 'missing', because: 'failed' } : { kind: 'made', text };
  } catch (error) {
    if (error instanceof SpendingRefusedError) {
      return { kind: 'missing', because: error.because ?? 'budget' };
    }
    throw error;
  }
}
