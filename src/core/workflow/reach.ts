// Which steps of a workflow can never begin: those that wait for one another, or for a value that only
// they would set. What could hold in some run counts as holding, so that no step is blamed that can begin.

import type { Condition } from './condition.ts';
import type { Step } from './definition.ts';
import { rootOf } from './path.ts';
import { INPUT } from './state.ts';

/** Their ids, in the order of the file. */
export function stepsNeverBegun(steps: readonly Step[]): readonly string[] {
  let begun: readonly Step[] = [];
  for (;;) {
    const next = steps.filter(({ when }) => when === undefined || mayHold(when, begun));
    if (next.length === begun.length) break;
    begun = next;
  }
  return steps.filter((step) => !begun.includes(step)).map(({ id }) => id);
}

/** Whether it may come to hold where these steps were done, or failed. */
function mayHold(condition: Condition, begun: readonly Step[]): boolean {
  if ('not' in condition) return true;
  if ('and' in condition) return condition.and.every((each) => mayHold(each, begun));
  if ('or' in condition) return condition.or.some((each) => mayHold(each, begun));
  if ('done' in condition) return begun.some(({ id }) => id === condition.done);
  if ('failed' in condition) return begun.some(({ id }) => id === condition.failed);
  const root = rootOf('present' in condition ? condition.present : condition.equals.path);
  return root === INPUT || begun.some(({ sets }) => sets === root);
}
