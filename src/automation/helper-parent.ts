// Who starts a helper, with what they may at that moment, and who pays for it.

import type { Payer } from '../core/budget-limits.ts';
import type { SystemSender } from '../core/message.ts';
import { personNames } from '../core/message-limits.ts';
import { type HelperParent, SubagentError } from '../core/subagent.ts';
import type { ToolContext } from '../tools/tool.ts';

type Asker = Pick<ToolContext, 'session' | 'chat' | 'rights' | 'isTainted' | 'person' | 'payer'>;

/** @throws SubagentError outside of a turn, where nobody would pay */
export function parentOf({ session, chat, rights, isTainted, person, payer }: Asker): HelperParent {
  if (payer === undefined) throw new SubagentError('Helpers are started only within a turn.');
  return {
    ...{ session, chat, rights, isTainted, person },
    payingChat: payer.chat,
    payer: payerOf(payer),
  };
}

export function payerOf(payer: Payer): Pick<SystemSender, 'paidBy' | 'limits'> {
  const { sender } = payer;
  if (sender.kind === 'person') return { paidBy: personNames(payer) };
  const { paidBy, limits } = sender;
  return {
    ...(paidBy === undefined ? {} : { paidBy }),
    ...(limits === undefined ? {} : { limits }),
  };
}
