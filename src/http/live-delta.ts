// A picture of a running turn as the difference to the one a client has, so that a long answer costs
// its length once and not once per word. Pure; the page folds the differences back.

import type { LiveUpdate } from '../core/event.ts';

export type LiveDelta = {
  readonly turnId: LiveUpdate['turnId'];
  readonly phase: LiveUpdate['phase'];
  /** UTF-16 units of the client's text that stay. */
  readonly keep: number;
  /** Follows what stays. */
  readonly append: string;
  /** Absent where they are as before. */
  readonly tools?: LiveUpdate['tools'];
  /** Absent where there is none. */
  readonly notice?: string;
  readonly result?: LiveUpdate['result'];
};

/** `before`: what the client has of this turn; undefined on a new connection. */
export function deltaOf(before: LiveUpdate | undefined, now: LiveUpdate): LiveDelta {
  const keep = commonLength(before?.markdown ?? '', now.markdown);
  const { turnId, phase, tools, notice, result } = now;
  return {
    turnId,
    phase,
    keep,
    append: now.markdown.slice(keep),
    ...(before !== undefined && isSame(before.tools, tools) ? {} : { tools }),
    ...(notice === undefined ? {} : { notice }),
    ...(result === undefined ? {} : { result }),
  };
}

/** Whoever paints the pictures makes a new activity of one that changed. */
function isSame(before: LiveUpdate['tools'], now: LiveUpdate['tools']): boolean {
  return before.length === now.length && now.every((tool, index) => tool === before[index]);
}

function commonLength(before: string, now: string): number {
  if (now.startsWith(before)) return before.length;
  let length = 0;
  while (length < now.length && before.charCodeAt(length) === now.charCodeAt(length)) length += 1;
  // JSON cannot carry half a surrogate pair.
  return isHighSurrogate(now.charCodeAt(length - 1)) ? length - 1 : length;
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
