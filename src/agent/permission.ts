// Whether a call is run at once, waits for an owner's yes, or is refused: by the rights of the turn
// and by what its conversation was shown. Asked anew for every call: both may change in a turn.

import { type Permission, permissionOf } from '../core/rights.ts';
import { carriesData } from '../core/taint.ts';
import type { BoundCall } from '../tools/tool.ts';
import type { CallTurn } from './call-turn.ts';

export type ReadyCall = Extract<BoundCall, { readonly kind: 'ready' }>;

export function permissionFor(
  { rights, thread }: Pick<CallTurn, 'rights' | 'thread'>,
  bound: ReadyCall,
): Permission {
  const { isTainted } = thread;
  const permission = permissionOf(bound.accessIn({ isTainted }), rights.current, isTainted);
  // Its text is shown to an owner, not the call.
  if (bound.isPosted) return permission === 'ask' ? 'free' : permission;
  const { url } = bound;
  const mayLeak = isTainted && url !== undefined && carriesData(url, thread.knownTexts);
  return permission === 'free' && mayLeak ? 'ask' : permission;
}
