// The flags by which a person is allowed more or less than others in a day.

import { type PersonRecord, withChoice } from '../core/person.ts';
import { PERSON_LIMITS, type PersonLimits, readLimit, withLimit } from '../core/person-limits.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';

export type LimitFlags = {
  readonly messagesPerMinute?: string;
  readonly messagesPerDay?: string;
  readonly tokensPerDay?: string;
  readonly moneyPerDay?: string;
};

const FLAGS = {
  perMinute: 'messagesPerMinute',
  perDay: 'messagesPerDay',
  tokensPerDay: 'tokensPerDay',
  moneyPerDay: 'moneyPerDay',
} as const satisfies Record<keyof PersonLimits, keyof LimitFlags>;

/** Takes a limit back. */
const AUTOMATIC = 'auto';

/** @throws CommandFailure where a value is no such number. */
export function limitChanges(
  flags: LimitFlags,
): readonly ((record: PersonRecord) => PersonRecord)[] {
  return PERSON_LIMITS.flatMap((limit) => {
    const typed = flags[FLAGS[limit.key]];
    if (typed === undefined) return [];
    const value = readLimit(limit, typed);
    if (typed !== AUTOMATIC && value === undefined) {
      throw new CommandFailure(EXIT.usage, `${typed} is no number of ${limit.words}`);
    }
    return [
      (record: PersonRecord) =>
        withChoice(record, 'limits', withLimit(record.limits, limit, value)),
    ];
  });
}
