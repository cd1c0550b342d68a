// The budgets a call is charged to, by name, and what the configuration allows each of them in a day.

import type { LimitsConfig } from './config-limits.ts';
import { chatRefOf, type InboundMessage, sessionKeyOf } from './message.ts';
import { type CountNames, personNames } from './message-limits.ts';
import type { Cap } from './spending.ts';

/** The message that a call answers: its sender and its chat pay. */
export type Payer = Pick<InboundMessage, 'chat' | 'sender'> & {
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
const MICROS = 1_000_000;

/** Our own machinery is charged to the chat it works in, and to the total. */
export function chargedFor(payer: Payer, limits: LimitsConfig): readonly Charged[] {
  const { chat, sender } = payer;
  const person = personBudgetNames(payer);
  const conversation: CountNames = [CHAT + sessionKeyOf(chat)];
  const charged = (whose: Charged['whose'], names: CountNames) => {
    return { whose, names, cap: budgetCap(names, limits) };
  };
  return [
    ...(sender.kind === 'person' ? [charged('person', person)] : []),
    charged('chat', conversation),
    charged('total', [TOTAL]),
  ];
}

/** `alsoKnownAs`: further names of the person, `channel:id`. */
export function personBudgetNames(payer: Payer, alsoKnownAs: readonly string[] = []): CountNames {
  const [first, ...others] = personNames(payer);
  return [PERSON + first, ...[...others, ...alsoKnownAs].map((name) => PERSON + name)];
}

/** What a budget of these names may take in a day. */
export function budgetCap([key, ...others]: CountNames, limits: LimitsConfig): Cap {
  const { budget } = limits;
  if (key === TOTAL) {
    return capOf({ tokens: budget.totalTokensPerDay, money: budget.totalMoneyPerDay });
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
  return capOf({ ...general, ...exceptionFor(names, limits) });
}

function exceptionFor(names: readonly string[], { exceptions }: LimitsConfig) {
  const { tokensPerDay, moneyPerDay } = exceptions.find(({ who }) => names.includes(who)) ?? {};
  return {
    ...(tokensPerDay === undefined ? {} : { tokens: tokensPerDay }),
    ...(moneyPerDay === undefined ? {} : { money: moneyPerDay }),
  };
}

const capOf = ({ tokens, money }: { readonly tokens: number; readonly money: number }): Cap => ({
  tokens,
  micros: Math.round(money * MICROS),
});
