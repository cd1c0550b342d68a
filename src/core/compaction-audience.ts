// For whom a conversation is summed up: a small model needs plain facts, one with a wide window little
// more than pointers to where things were said.

import type { ModelCapabilities } from './model-capabilities.ts';

export type Audience = 'minimal' | 'standard' | 'advanced';

/** From this window on a model can look up what it needs. */
const WIDE_TOKENS = 200_000;

export function audienceOf(reader: {
  readonly local: boolean;
  readonly contextTokens: number;
  readonly capabilities: Pick<ModelCapabilities, 'sizeClass'>;
}): Audience {
  if (reader.local && reader.capabilities.sizeClass === 'small') return 'minimal';
  return reader.contextTokens >= WIDE_TOKENS ? 'advanced' : 'standard';
}

/** How the notes are written, behind what they are. */
export const FOR_AUDIENCE: Readonly<Record<Audience, string>> = {
  minimal: `\
A small model reads them. Write these sections, at most 10 lines each; leave out a section that has nothing. Each line is one fact as "key: value", e.g. "departure: 8:12". No pronouns: name who or what is meant each time. Numbers exactly, paths in full.
Task: what the person wants now.
Decided: decisions and wishes of the person.
Facts: names, numbers, dates, places, files, addresses.
Open: what is not done yet.
Failed: what went wrong, and why.`,
  standard: `\
Write these sections, at most 10 short lines each; leave out a section that has nothing. What was said last counts most.
Task: what the person wants now, and how far it is.
Decided: decisions, wishes and rules of the person.
Facts: who is who, numbers, dates, places, files, addresses, ids and other exact data, each with what it is.
Open: what was promised, asked or begun and is not done, with its date.
Done: what was done and is still needed for what is open.
Failed: what was tried without success, and why.`,
  advanced: `\
Whoever reads them can look up every turn. Write at most 5 lines of one sentence each, the most needed first: what the person wants now, what was decided, what is open. End each with the turns where it stands, e.g. "(turns 12, 15)".`,
};
