// Whether anybody still waits for an owner's yes: what was ended by hand, a workflow or a helper, does
// nothing more, also where the question was not yet answered.

import type { Collections } from '../../app/collections.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { SUBAGENT_CHANNEL } from '../subagents/rules/subagent.ts';
import { isOver, WORKFLOW_CHANNEL } from '../workflows/rules/workflow.ts';

/** `chat`: of the turn that asked. */
export function createIsAwaited({
  subagents,
  workflows,
}: Collections): (chat: ChatRef) => Promise<boolean> {
  return async ({ channel, chat }) => {
    if (channel === WORKFLOW_CHANNEL) {
      const run = await workflows.runs.get(chat);
      return run !== undefined && !isOver(run);
    }
    const isHelper = channel === SUBAGENT_CHANNEL;
    return !isHelper || (await subagents.runs.get(chat))?.state !== 'cancelled';
  };
}
