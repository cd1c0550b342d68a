// By what a helper is known: what was asked, and where.

import { createHash } from 'node:crypto';
import { type HelperRun, type HelperWish, SubagentError } from '../core/subagent.ts';
import type { ToolContext } from '../tools/tool.ts';

const ID_CHARS = 10;

/** The same for the same wish of the same turn, so that a call that runs again after a crash starts one. */
export function idOf(
  { id, plan, label }: HelperWish,
  { session, turnId }: Pick<ToolContext, 'session' | 'turnId'>,
): string {
  const what = id === undefined ? [turnId, label, plan] : [plan.kind, id];
  const hash = createHash('sha256')
    .update(JSON.stringify([session, ...what]))
    .digest('hex');
  return `h${hash.slice(0, ID_CHARS)}`;
}

/** @throws SubagentError */
export function checkSame(known: HelperRun, { plan, id }: HelperWish): void {
  if (JSON.stringify(known.plan) === JSON.stringify(plan)) return;
  throw new SubagentError(`"${id}" is something else already. Take another id.`);
}
