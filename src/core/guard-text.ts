// What a model is told of a call that was not run, with the earlier result that stands for it.

import type { Verdict } from './guard.ts';
import type { ResultId } from './ids.ts';
import type { ToolEntry } from './transcript.ts';

type Blocked = Extract<Verdict, { readonly kind: 'blocked' }>;

const GO_ON = 'Use what you have, try something else, or answer without this.';

/** The earlier result itself, or the name by which it can be read; undefined where there is neither. */
export type EarlierResult =
  | { readonly kind: 'shown'; readonly result: ToolEntry }
  | { readonly kind: 'named'; readonly id: ResultId };

export function blockedText({ why, times }: Blocked, earlier: EarlierResult | undefined): string {
  const named = earlier?.kind === 'named' ? ` read_result with id "${earlier.id}" shows it.` : '';
  const shown = earlier?.kind === 'shown' ? [earlier.result.text] : [];
  return [`[Not run: ${reasonOf(why, times)} ${GO_ON}${named}]`, ...shown].join('\n');
}

function reasonOf(why: Blocked['why'], times: number): string {
  switch (why) {
    case 'repeated':
      return `this same call was made ${times === 1 ? 'once' : `${times} times`} in this answer, with the same result.`;
    case 'once':
      return 'this was read in this answer already; what it said still holds.';
    case 'loop':
      return `these calls go round in a circle; the same ones gave the same results ${times} times.`;
    case 'failing':
      return `this tool failed ${times} times in a row in the same way.`;
    case 'too_many':
      return `one answer may make ${times} calls at once; the calls before this one were run.`;
  }
}
