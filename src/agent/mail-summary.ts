// Summarises mails for the owner who answers them: one call of the cheap model, without tools, paid by
// the mail's own thread. What comes back is cut to plain words by core.

import type { Payer } from '../core/budget-limits.ts';
import {
  cleanSummary,
  SUMMARY_TOKENS,
  type SummaryAsk,
  type SummaryOutcome,
  summaryPrompt,
} from '../core/mail/summary.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { SideModel } from './side-model.ts';
import { SpendingRefusedError } from './spending.ts';

export type SummarisedMail = SummaryAsk & { readonly payer: Payer };

/** @throws ProviderError, the signal's reason */
export async function summariseMail(
  side: SideModel,
  { payer, ...ask }: SummarisedMail,
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
