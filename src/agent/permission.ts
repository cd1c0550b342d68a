// Whether a call is run at once, waits for an owner's yes, or is refused: by the rights of the turn
// and by what its conversation was shown. Asked anew for every call: both may change in a turn.

import { type Permission, permissionOf } from '../core/rights.ts';
import { carriesData } from '../core/taint.ts';
import type { ToolCall } from '../core/transcript.ts';
import type { BoundCall } from '../tools/tool.ts';
import type { CallTurn } from './call-turn.ts';

export type ReadyCall = Extract<BoundCall, { readonly kind: 'ready' }>;

export function permissionFor(
  { rights, thread, toolbox }: Pick<CallTurn, 'rights' | 'thread' | 'toolbox'>,
  call: ToolCall,
  bound: ReadyCall,
): Permission {
  const { isTainted } = thread;
  const permission = permissionOf(bound.accessIn({ isTainted }), rights.current, isTainted);
  // Its text is shown to an owner, not the call.
  if (bound.isPosted) return permission === 'ask' ? 'free' : permission;
  const { url } = bound;
  if (permission !== 'free' || !isTainted || url === undefined) return permission;
  const earlier = thread.callsBefore(call).flatMap(({ name, arguments: json }) => {
    const other = toolbox.bind(name, json);
    return other.kind === 'ready' && other.url !== undefined ? [other.url] : [];
  });
  return carriesData(url, thread.knownTexts, earlier) ? 'ask' : permission;
}
