// The budgets that a call is charged to, by name, and their configured daily limits.

import type { PersonLimits } from '../../../kernel/access/person.ts';
import type { LimitsConfig } from '../../../kernel/config/limits.ts';
import type { Payer } from '../../../kernel/message/message.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../../kernel/message/message.ts';
import { type CountNames, personNames, spanWords } from '../../../kernel/message/message-limits.ts';
import { verbatim } from '../../../kernel/message/untrusted.ts';
import { msgid, ngettext, t } from '../../../lib/texts.ts';
import { JOB_CHANNEL } from '../../schedule/settings.ts';
import type { ConversationCost } from './conversation-cost.ts';
import { type Amount, type Cap, capFor, type Ledger, type Price, shareUsed } from './spending.ts';

export type Charged = {
  readonly whose: 'person' | 'chat' | 'total';
  readonly names: CountNames;
  readonly cap: Cap;
};

export const TOTAL = 'total';
const PERSON = 'person ';
const CHAT = 'chat ';
const JOB = 'job ';
const MICROS = 1_000_000;

/**
 * The gateway's own calls are charged to the chat or job they work in, to its creator, and to the
 * total. `ownOf`: the limits of a person of this name, which override the configuration.
 */
export function chargedFor(
  payer: Payer,
  limits: LimitsConfig,
  ownOf: (name: string) => PersonLimits | undefined = () => undefined,
): readonly Charged[] {
  const { chat, sender } = payer;
  const person = payingNames(payer);
  const charged = (whose: Charged['whose'], names: CountNames) => {
    return { whose, names, cap: budgetCap(names, limits, ownOf(names[0])) };
  };
  return [
    ...(person === undefined ? [] : [charged('person', person)]),
    chat.channel === JOB_CHANNEL
      ? jobCharge(chat.chat, sender, limits)
      : charged('chat', [CHAT + sessionKeyOf(chat)]),
    charged('total', [TOTAL]),
  ];
}

function payingNames(payer: Payer): CountNames | undefined {
  const { sender } = payer;
  if (sender.kind === 'person') return personBudgetNames(payer);
  const [first, ...others] = sender.paidBy ?? [];
  return first === undefined ? undefined : [PERSON + first, ...others.map((name) => PERSON + name)];
}

/** The limit of a job is the lower of its own and the one configured for all jobs. */
function jobCharge(id: string, sender: Payer['sender'], limits: LimitsConfig): Charged {
  const names: CountNames = [JOB + id];
  const { tokensPerDay = 0, moneyPerDay = 0 } =
    sender.kind === 'system' ? (sender.limits ?? {}) : {};
  const given = capOf({ tokens: tokensPerDay, money: moneyPerDay });
  const general = budgetCap(names, limits);
  const cap = {
    tokens: lessOf(general.tokens, given.tokens),
    micros: lessOf(general.micros, given.micros),
  };
  return { whose: 'chat', names, cap };
}

/** 0: no limit. */
const lessOf = (one: number, other: number) =>
  one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);

/** `alsoKnownAs`: further names of the person, `channel:id`. */
export function personBudgetNames(payer: Payer, alsoKnownAs: readonly string[] = []): CountNames {
  const [first, ...others] = personNames(payer);
  return [PERSON + first, ...[...others, ...alsoKnownAs].map((name) => PERSON + name)];
}

type BudgetHolder =
  | { readonly kind: 'person'; readonly channel: string; readonly id: string }
  | { readonly kind: 'chat'; readonly chat: ChatRef }
  | { readonly kind: 'nobody' };

/** The person, chat or job that a budget's name refers to. */
export function budgetHolder(name: string): BudgetHolder {
  const [, prefix = '', rest = ''] = /^(person |chat )(.*)$/s.exec(name) ?? [];
  if (prefix === CHAT) {
    const chat = chatRefOf(rest);
    return chat === undefined ? { kind: 'nobody' } : { kind: 'chat', chat };
  }
  const colon = rest.indexOf(':');
  if (prefix !== PERSON || colon < 0) return { kind: 'nobody' };
  return { kind: 'person', channel: rest.slice(0, colon), id: rest.slice(colon + 1) };
}

/** The daily limit of the budget with these names; `own`: the person's own limits. */
export function budgetCap(
  [key, ...others]: CountNames,
  limits: LimitsConfig,
  own?: PersonLimits,
): Cap {
  const { budget, exceptions } = limits;
  if (key === TOTAL) {
    return capOf({ tokens: budget.totalTokensPerDay, money: budget.totalMoneyPerDay });
  }
  if (key.startsWith(JOB)) {
    const { perJobTokensPerDay: tokens, perJobMoneyPerDay: money } = budget;
    return capOf({
      tokens,
      money,
      ...exceptionFor([`${JOB_CHANNEL}:${key.slice(JOB.length)}`], limits),
    });
  }
  if (key.startsWith(CHAT)) {
    const { perChatTokensPerDay: tokens, perChatMoneyPerDay: money } = budget;
    const chat = exceptions.length === 0 ? undefined : chatRefOf(key.slice(CHAT.length));
    const names = chat === undefined ? [] : [`${chat.channel}:${chat.chat}`];
    return capOf({ tokens, money, ...exceptionFor(names, limits) });
  }
  const { perPersonTokensPerDay: tokens, perPersonMoneyPerDay: money } = budget;
  if (exceptions.length === 0) return capOf({ tokens, money, ...setBy(own) });
  const names = [key, ...others].map((name) => name.slice(PERSON.length));
  const channels = names.map((name) => name.split(':', 1).join());
  const general = { tokens, money, ...exceptionFor(channels, limits) };
  return capOf({ ...general, ...exceptionFor(names, limits), ...setBy(own) });
}

function exceptionFor(names: readonly string[], { exceptions }: LimitsConfig) {
  return setBy(exceptions.find(({ who }) => names.includes(who)));
}

function setBy({ tokensPerDay, moneyPerDay }: SetLimits = {}) {
  return {
    ...(tokensPerDay === undefined ? {} : { tokens: tokensPerDay }),
    ...(moneyPerDay === undefined ? {} : { money: moneyPerDay }),
  };
}

type SetLimits = {
  readonly tokensPerDay?: number | undefined;
  readonly moneyPerDay?: number | undefined;
};

const capOf = ({ tokens, money }: { readonly tokens: number; readonly money: number }): Cap => ({
  tokens,
  micros: Math.round(money * MICROS),
});

// Texts about budgets.

/** "12,345 tokens, about 0.12 USD"; without the money where no price is known. */
export function amountText({ tokens, micros }: Amount, currency: string): string {
  const counted = t`${tokens.toLocaleString('en-US')} tokens`;
  return micros === 0 ? counted : t`${counted}, about ${moneyText(micros, currency)}`;
}

export function moneyText(micros: number, currency: string): string {
  const digits = micros > 0 && micros < MICROS / 10 ? 4 : 2;
  return `${(micros / MICROS).toFixed(digits)} ${currency}`;
}

function capText({ tokens, micros }: Cap, currency: string): string {
  const parts = [
    ...(tokens === 0 ? [] : [t`${tokens.toLocaleString('en-US')} tokens`]),
    ...(micros === 0 ? [] : [moneyText(micros, currency)]),
  ];
  return `${parts.join(' or ')} a day`;
}

export type BudgetView = {
  /** As stored: `person telegram:700`, `chat telegram:700`, `total`. */
  readonly key: string;
  /** Display name of its holder; untrusted. */
  readonly name?: string;
  readonly ledger: Ledger;
  readonly cap: Cap;
};

/** "the budget of `Anna`", "the budget of all together". */
function ownerName(view: BudgetView): string {
  return view.key === 'total' ? t`the budget of all together` : t`the budget of ${titleOf(view)}`;
}

/** "`Anna` (person telegram:700)": with the key that commands accept. */
const titleOf = ({ key, name }: BudgetView) =>
  name === undefined ? key : `${verbatim(name)} (${key})`;

export function nearlyUsedText(view: BudgetView, currency: string, forOwner: boolean): string {
  const percent = Math.floor(shareUsed(view) * 100);
  const whose = forOwner ? ownerName(view) : t`today’s budget here`;
  const limit = capText(capFor(view.cap, view.ledger), currency);
  return t`${percent} % of ${whose} is used up (${limit}). It resets at midnight.`;
}

export function cheaperText(model: string): string {
  return t`Today’s budget is almost used up: until midnight I answer with ${model}.`;
}

export function usedUpText(view: BudgetView, currency: string, leftMs: number): string {
  const limit = capText(capFor(view.cap, view.ledger), currency);
  const whose = view.key === 'total' ? t`my budget for today` : t`today’s budget here`;
  return t`${sentence(endOf(view, whose))} (${limit}). I can answer again after midnight, in ${spanWords(leftMs)}.`;
}

export function usedUpOwnerText(view: BudgetView, currency: string, morePercent: number): string {
  const limit = capText(capFor(view.cap, view.ledger), currency);
  const spent = amountText(view.ledger.spent, currency);
  return (
    t`${sentence(endOf(view, ownerName(view)))}: ${spent} of ${limit}. ` +
    t`\`/budget more ${morePercent} ${view.key}\` allows ${morePercent} % more for today.`
  );
}

/**
 * For an owner. `assumed`: the price that is charged instead; undefined: the model was not called.
 */
export function unpricedText(model: string, assumed: Price | undefined, currency: string): string {
  const told = t`I do not know what ${verbatim(model)} costs`;
  const remedy = t`Set its price in \`models.prices\`, or set budgets in tokens.`;
  if (assumed === undefined) {
    return t`${told}, so I do not use it under a budget in money. ${remedy}`;
  }
  const { input, output } = assumed;
  const charged = t`${input} ${currency} per million tokens of questions and ${output} of answers`;
  return t`${told}, so that budgets in money hold I charge ${charged}, likely more than it costs. ${remedy}`;
}

/** For the person who gets no answer. */
export const unpricedRefusal = (model: string) =>
  t`I cannot use ${verbatim(model)}: I do not know its price, and a budget in money applies here. ` +
  t`My owner can set the price in \`models.prices\`.`;

/** One line of a list of budgets. */
export function budgetLine(view: BudgetView, currency: string): string {
  const { ledger, cap } = view;
  const used = amountText(ledger.spent, currency);
  const limited = cap.tokens > 0 || cap.micros > 0;
  const of = limited
    ? t` — ${Math.floor(shareUsed(view) * 100)} % of ${capText(capFor(cap, ledger), currency)}`
    : '';
  const extra = ledger.extraPercent > 0 ? t` (${ledger.extraPercent} % more today)` : '';
  const { calls } = ledger;
  const inCalls = ngettext(msgid`${used} in ${calls} call`, `${used} in ${calls} calls`, calls);
  return `${titleOf(view)}: ${inCalls}${of}${extra}`;
}

/** A line about a conversation, and one for each of several models that shared its turns. */
export function conversationLines(
  { calls, spent, unpriced, shares }: ConversationCost,
  currency: string,
): string {
  const of = unpriced > 0 && spent.micros > 0 ? t`, ${unpriced} of them without a known price` : '';
  const parts = shares.map(
    (share) => t`- ${share.role}: ${amountText(share.spent, currency)} in ${called(share.calls)}`,
  );
  return [t`${amountText(spent, currency)} in ${called(calls)}${of}`, ...parts].join('\n');
}

const called = (calls: number) =>
  ngettext(msgid`${calls} model call`, `${calls} model calls`, calls);

/** A call is refused as soon as its worst case does not fit, however much of the budget is left. */
const endOf = (view: BudgetView, whose: string) =>
  shareUsed(view) >= 1
    ? t`${whose} is used up`
    : t`what is left of ${whose} is too little for an answer`;

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
