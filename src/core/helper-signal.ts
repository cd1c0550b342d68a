// What a helper at work says that whoever asked has to know before it is done: a line of its own that
// it marks itself. Nothing is guessed from words like "error" or "found".

import { headOf } from './cut.ts';
import type { HelperRun } from './subagent.ts';

/** Of one helper; more are left to its result. */
export const MAX_SIGNALS = 3;
const MAX_CHARS = 500;
const MARKED = /^[ \t]*\**CRITICAL:?\**:?[ \t]+(\S.*)$/gm;

/** Told to a helper that is heard while it works. */
export const SIGNAL_NOTE =
  '[While you work, whoever gave the task sees nothing of it. Only if they must know something at once, ' +
  'because what they do now would be wrong or do harm without it, write a line that begins with ' +
  '"CRITICAL: " before your next call of a tool. It interrupts them; go on then.]';

export function signalsIn(text: string): readonly string[] {
  return [...text.matchAll(MARKED)].map(([, said = '']) =>
    headOf(said.replace(/\**\s*$/, ''), MAX_CHARS),
  );
}

/** What stands before the words of the helper. */
export const signalText = ({ label, id }: Pick<HelperRun, 'label' | 'id'>) =>
  `[A helper of yours that is still at work, "${label}" (${id}), reports what it holds for critical. It ` +
  'goes on by itself and reports its end. See whether this changes what you do now; tell the person only ' +
  'if they need it.]';
