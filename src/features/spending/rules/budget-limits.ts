// The budgets a call is charged to, by name, and what the configuration allows each of them in a day.

import type { PersonLimits } from '../../../kernel/access/person.ts';
import type { LimitsConfig } from '../../../kernel/config/limits.ts';
import {
  type ChatRef,
  chatRefOf,
  type InboundMessage,
  sessionKeyOf,
} from '../../../kernel/message/message.ts';
import { type CountNames, personNames } from '../../../kernel/message/message-limits.ts';
import { JOB_CHANNEL } from '../../schedule/rules/job.ts';
import type { Cap } from './spending.ts';

/** The message that a call answers: its sender and its chat pay. */
export type Payer = Pick<InboundMessage, 'chat' | 'sender' | 'session'> & {
  /** Whoever is in the chat knows nothing of it: an owner is told instead. */
  readonly isUnseen?: boolean;
};

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
 * Our own machinery is charged to the chat or the job it works in, to whoever made it, and to the
 * total. `ownOf`: what a person of this name is allowed, whatever is
 * configured.
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

/** What a job may take is the less of what it was given and what is configured for all jobs. */
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

export type BudgetHolder =
  | { readonly kind: 'person'; readonly channel: string; readonly id: string }
  | { readonly kind: 'chat'; readonly chat: ChatRef }
  | { readonly kind: 'nobody' };

/** Whom a name of a budget means. */
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

/** What a budget of these names may take in a day; `own` counts for a person's. */
export function budgetCap(
  [key, ...others]: CountNames,
  limits: LimitsConfig,
  own?: PersonLimits,
): Cap {
  const { budget } = limits;
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
    const chat = chatRefOf(key.slice(CHAT.length));
    const names = chat === undefined ? [] : [`${chat.channel}:${chat.chat}`];
    return capOf({ tokens, money, ...exceptionFor(names, limits) });
  }
  const { perPersonTokensPerDay: tokens, perPersonMoneyPerDay: money } = budget;
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
