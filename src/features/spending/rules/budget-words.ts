// What people are told about budgets.

import { spanWords } from '../../../kernel/intake/rules/fair-use.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import type { ConversationCost } from './conversation-cost.ts';
import { type Amount, type Cap, capFor, type Ledger, type Price, shareUsed } from './spending.ts';

const MICROS = 1_000_000;

/** "12,345 tokens, about 0.12 USD"; the money is left out where none is known. */
function amountText({ tokens, micros }: Amount, currency: string): string {
  const counted = `${tokens.toLocaleString('en-US')} tokens`;
  return micros === 0 ? counted : `${counted}, about ${moneyText(micros, currency)}`;
}

function moneyText(micros: number, currency: string): string {
  const digits = micros > 0 && micros < MICROS / 10 ? 4 : 2;
  return `${(micros / MICROS).toFixed(digits)} ${currency}`;
}

function capText({ tokens, micros }: Cap, currency: string): string {
  const parts = [
    ...(tokens === 0 ? [] : [`${tokens.toLocaleString('en-US')} tokens`]),
    ...(micros === 0 ? [] : [moneyText(micros, currency)]),
  ];
  return `${parts.join(' or ')} a day`;
}

export type BudgetView = {
  /** As it is kept: `person telegram:700`, `chat telegram:700`, `total`. */
  readonly key: string;
  /** Whose it is; shown, never trusted. */
  readonly name?: string;
  readonly ledger: Ledger;
  readonly cap: Cap;
};

/** "your budget", "the budget of all": as said to whoever reads it. */
function ownerName(view: BudgetView): string {
  return view.key === 'total' ? 'the budget of all together' : `the budget of ${titleOf(view)}`;
}

/** "`Anna` (person telegram:700)": with the key by which a command means it. */
const titleOf = ({ key, name }: BudgetView) =>
  name === undefined ? key : `${verbatim(name)} (${key})`;

export function nearlyUsedText(view: BudgetView, currency: string, forOwner: boolean): string {
  const percent = Math.floor(shareUsed(view) * 100);
  const whose = forOwner ? ownerName(view) : 'today’s budget here';
  const limit = capText(capFor(view.cap, view.ledger), currency);
  return `${percent} % of ${whose} is used up (${limit}). It begins anew at midnight.`;
}

export function cheaperText(model: string): string {
  return `Today’s budget is almost used up: until midnight I answer with ${model}.`;
}

export function usedUpText(view: BudgetView, currency: string, leftMs: number): string {
  const limit = capText(capFor(view.cap, view.ledger), currency);
  const whose = view.key === 'total' ? 'my budget for today' : 'today’s budget here';
  return `${sentence(endOf(view, whose))} (${limit}). I can answer again after midnight, in ${spanWords(leftMs)}.`;
}

export function usedUpOwnerText(view: BudgetView, currency: string, morePercent: number): string {
  const limit = capText(capFor(view.cap, view.ledger), currency);
  const spent = amountText(view.ledger.spent, currency);
  return (
    `${sentence(endOf(view, ownerName(view)))}: ${spent} of ${limit}. ` +
    `\`/budget more ${morePercent} ${view.key}\` allows ${morePercent} % more for today.`
  );
}

/** For an owner. `assumed`: what it is charged all the same; undefined: it was not asked. */
export function unpricedText(model: string, assumed: Price | undefined, currency: string): string {
  const told = `What ${verbatim(model)} costs is not known to me`;
  const remedy = 'Write its price in `models.prices`, or set budgets in tokens.';
  if (assumed === undefined) {
    return `${told}, so I do not ask it where a budget in money counts. ${remedy}`;
  }
  const { input, output } = assumed;
  const charged = `${input} ${currency} per million tokens of questions and ${output} of answers`;
  return `${told}, so that budgets in money hold I charge ${charged}, likely more than it costs. ${remedy}`;
}

/** For the person who gets no answer. */
export const unpricedRefusal = (model: string) =>
  `I do not answer with ${verbatim(model)}: what it costs is not known to me, and a budget in money counts ` +
  'here. Whoever looks after me can write its price in `models.prices`.';

/** One line of a list of budgets. */
export function budgetLine(view: BudgetView, currency: string): string {
  const { ledger, cap } = view;
  const used = amountText(ledger.spent, currency);
  const limited = cap.tokens > 0 || cap.micros > 0;
  const of = limited
    ? ` — ${Math.floor(shareUsed(view) * 100)} % of ${capText(capFor(cap, ledger), currency)}`
    : '';
  const extra = ledger.extraPercent > 0 ? ` (${ledger.extraPercent} % more today)` : '';
  return `${titleOf(view)}: ${used} in ${ledger.calls} call${ledger.calls === 1 ? '' : 's'}${of}${extra}`;
}

/** A line about a conversation, and one for each of several who shared its turns. */
export function conversationLines(
  { calls, spent, unpriced, shares }: ConversationCost,
  currency: string,
): string {
  const of = unpriced > 0 && spent.micros > 0 ? `, ${unpriced} of them without a known price` : '';
  const parts = shares.map(
    (share) => `- ${share.role}: ${amountText(share.spent, currency)} in ${called(share.calls)}`,
  );
  return [`${amountText(spent, currency)} in ${called(calls)}${of}`, ...parts].join('\n');
}

const called = (calls: number) => `${calls} model call${calls === 1 ? '' : 's'}`;

/** A call is refused as soon as its worst case has no room, however much of the budget is left. */
const endOf = (view: BudgetView, whose: string) =>
  shareUsed(view) >= 1
    ? `${whose} is used up`
    : `what is left of ${whose} is too little for an answer`;

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
