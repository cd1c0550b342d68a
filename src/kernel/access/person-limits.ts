// What an owner allows one person a day, whatever the configuration says: counted over all their doors
// together. How messages and money are counted is not decided here.

/** 0: no limit; left out: as configured. */
export type PersonLimits = {
  readonly perMinute?: number;
  readonly perDay?: number;
  readonly tokensPerDay?: number;
  /** In the configured currency. */
  readonly moneyPerDay?: number;
};

export type PersonLimit = {
  readonly key: keyof PersonLimits;
  /** As it is typed, also as a flag. */
  readonly name: string;
  readonly words: string;
  readonly most: number;
};

const MOST_MESSAGES = 1_000_000;
const MOST_TOKENS = 1_000_000_000_000;
const MOST_MONEY = 1_000_000_000;

export const PERSON_LIMITS: readonly PersonLimit[] = [
  {
    ...{ key: 'perMinute', name: 'messages-per-minute', words: 'messages a minute' },
    most: MOST_MESSAGES,
  },
  { key: 'perDay', name: 'messages-per-day', words: 'messages a day', most: MOST_MESSAGES },
  { key: 'tokensPerDay', name: 'tokens-per-day', words: 'tokens a day', most: MOST_TOKENS },
  { key: 'moneyPerDay', name: 'money-per-day', words: 'money a day', most: MOST_MONEY },
];

export const limitNamed = (name: string): PersonLimit | undefined =>
  PERSON_LIMITS.find((limit) => limit.name === name);

/** Undefined where it is no such number: messages and tokens are whole ones. */
export function readLimit({ key, most }: PersonLimit, typed: string): number | undefined {
  const value = /^\d{1,13}(?:\.\d{1,6})?$/.test(typed) ? Number(typed) : undefined;
  if (value === undefined || value > most) return undefined;
  return key === 'moneyPerDay' || Number.isInteger(value) ? value : undefined;
}

/** With one of them set, or taken back by undefined; undefined where none is left. */
export function withLimit(
  limits: PersonLimits | undefined,
  { key }: PersonLimit,
  value: number | undefined,
): PersonLimits | undefined {
  const entries = Object.entries({ ...limits, [key]: value });
  const kept = entries.filter(([, each]) => each !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Of two records of one person: nobody is allowed more by being both. */
export function strictest(
  one: PersonLimits | undefined,
  other: PersonLimits | undefined,
): PersonLimits | undefined {
  return PERSON_LIMITS.reduce<PersonLimits | undefined>((limits, limit) => {
    const both = [one?.[limit.key], other?.[limit.key]].flatMap((value) => value ?? []);
    if (both.length === 0) return limits;
    const limited = both.filter((value) => value > 0);
    return withLimit(limits, limit, limited.length === 0 ? 0 : Math.min(...limited));
  }, undefined);
}

/** "50 messages a day, no limit of tokens a day"; undefined where none is set. */
export function limitWords(limits: PersonLimits | undefined): string | undefined {
  const set = PERSON_LIMITS.flatMap(({ key, words }) => {
    const value = limits?.[key];
    if (value === undefined) return [];
    return [value === 0 ? `no limit of ${words}` : `${value.toLocaleString('en-US')} ${words}`];
  });
  return set.length === 0 ? undefined : set.join(', ');
}
