// Summarises mails before they are shown to an owner: a few at a time, each once, stored before it
// is shown. Without a summary in time, the mail is shown without one.

import { z } from 'zod';
import { SpendingRefusedError } from '../../agent/agent.ts';
import type { SideModel } from '../../agent/side-model.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef, Payer } from '../../kernel/message/message.ts';
import { MARKS, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { createPermits, within } from '../../lib/async.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { jsonRow, kind, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { MailNote } from './rules/bridge.ts';
import {
  cleanSummary,
  type MailSummary,
  SUMMARY_TOKENS,
  type SummaryAsk,
  type SummaryDue,
  type SummaryOutcome,
  summaryPrompt,
} from './rules/bridge.ts';

const AT_ONCE = 3;
/** Longest delay of a mail by its summary. */
const LONGEST_MS = 30_000;

export type MailToSummarise = Omit<SummaryAsk, 'language'> & {
  readonly payer: Payer;
  /** The chat in which it is read. */
  readonly readIn: ChatRef;
};

/** The part of the background model that is needed here; without tools. */
export type Summarise = (mail: MailToSummarise, signal: AbortSignal) => Promise<SummaryOutcome>;

type BridgeSummariesDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly rows: BridgeRows;
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
    using _permit = await permits.acquire(signal);
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
    }
  }

  /** Stored by the service, which retries failures with growing delays. */
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
     * Starts the summary in the background, or stores a finished one; leaves a running one alone.
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
      // Rejects only on abort: nothing was made then, and the next process starts again.
      prepare(mail, signal).catch(() => undefined);
    },
  };
}

const tooLate = () => new Error('no summary in time');

// Summarises a mail for the owner who answers it: one call of the background model, without tools,
// charged to the mail thread. The result is reduced to plain text by rules/bridge.ts.

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

// Stored mails with the stage of each.

/** What an owner wrote: the payload of the question about it. */
export type MailAnswer = { readonly text: string; readonly hasFiles: boolean };

export type MailStage =
  /** To be shown as soon as possible. */
  | { readonly kind: 'waiting' }
  /** A question about it is open. `answer`: of earlier versions. */
  | { readonly kind: 'shown'; readonly chat: ChatRef; readonly answer?: MailAnswer }
  /** Epoch milliseconds. */
  | { readonly kind: 'snoozed'; readonly until: number }
  | { readonly kind: 'archiving'; readonly chat: ChatRef };

export type BridgedMail = {
  readonly id: MessageId;
  readonly chat: ChatRef;
  readonly note: MailNote;
  /** Undefined where the excerpt is complete. */
  readonly summary?: MailSummary;
  /** Number of the newest question about it; 0: none yet. */
  readonly round: number;
  readonly stage: MailStage;
  /** Epoch milliseconds. */
  readonly at: number;
};

export const BRIDGE_SCOPE = 'mail-bridge';
const KEEP_DONE_MS = 30 * 86_400_000;

const MAIL = rowShape<BridgedMail>({
  ...{ id: text, chat: place, round: number, stage: kind, at: number },
  note: z.looseObject({ address: text, name: text, subject: text, lines: texts, files: texts }),
});

export type BridgeRows = {
  /** Oldest first. */
  readonly mails: Rows<BridgedMail>;
  /** Mails that are done, so that a redelivered mail is not shown again. */
  readonly done: Rows<object>;
};

export const openBridgeRows = (rows: OpenRows): BridgeRows => ({
  mails: rows({
    read(json) {
      const mail = jsonRow(json, MAIL);
      return mail && { ...mail, stage: stageOf(mail.stage) };
    },
    write: (mail) => JSON.stringify(mail),
    ...{ scope: BRIDGE_SCOPE, prefix: 'mail:', isCached: true },
    order: (one, other) => one.at - other.at,
  }),
  done: rows({ ...MARKS, scope: BRIDGE_SCOPE, prefix: 'done:' }),
});

/** In earlier versions an answer was part of the stage; what was not asked yet is shown again. */
function stageOf(stage: MailStage & Partial<EarlierStage>): MailStage {
  const { text, hasFiles = false, isAsked = true, chat } = stage;
  if (!isAsked || STAGES.includes(stage.kind)) return isAsked ? stage : { kind: 'waiting' };
  return text === undefined || chat === undefined
    ? { kind: 'waiting' }
    : { kind: 'shown', chat, answer: { text, hasFiles } };
}

const STAGES: readonly string[] = ['waiting', 'shown', 'snoozed', 'archiving'];
type EarlierStage = MailAnswer & { readonly chat: ChatRef; readonly isAsked: boolean };

/** Stores a mail that was not seen before. */
export async function addMail({ mails, done }: BridgeRows, mail: BridgedMail): Promise<void> {
  if ((await done.get(mail.id)) !== undefined) return;
  await mails.change(mail.id, (known) => (known === undefined ? mail : undefined));
}

/**
 * `step` returns the changed mail, `done` where it is finished, or undefined to leave it. Returns
 * whether anything changed.
 */
export async function changeMail(
  { mails, done }: BridgeRows,
  id: string,
  step: (mail: BridgedMail) => BridgedMail | 'done' | undefined,
): Promise<boolean> {
  const changed = await mails.change(
    id,
    (mail) => {
      const next = mail && step(mail);
      return next === 'done' ? 'remove' : next;
    },
    (_mail, isRemoved) => (isRemoved ? [done.write(id, {})] : []),
  );
  return changed !== undefined;
}

/** Removes mails that were done long ago. */
export const expireDone = ({ done }: BridgeRows, now: number): Promise<number> =>
  done.expire(now - KEEP_DONE_MS);
