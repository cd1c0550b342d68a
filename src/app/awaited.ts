// Whether anybody still waits for an owner's yes: what was ended by hand, a workflow or a helper, does
// nothing more, also where the question was not yet answered.

import { HELPERS_SCOPE, HelperBook } from '../automation/helper-book.ts';
import { WORKFLOWS_SCOPE, WorkflowBook } from '../automation/workflow-book.ts';
import type { ChatRef } from '../core/message.ts';
import { SUBAGENT_CHANNEL } from '../core/subagent.ts';
import { isOver, WORKFLOW_CHANNEL } from '../core/workflow.ts';
import type { StateStore } from '../store/store.ts';

/** `chat`: of the turn that asked. */
export function createIsAwaited(store: StateStore): (chat: ChatRef) => Promise<boolean> {
  const workflows = new WorkflowBook(store.scope(WORKFLOWS_SCOPE), (text) => text);
  const helpers = new HelperBook(store.scope(HELPERS_SCOPE));
  return async ({ channel, chat }) => {
    if (channel === WORKFLOW_CHANNEL) {
      const run = await workflows.get(chat);
      return run !== undefined && !isOver(run);
    }
    const isHelper = channel === SUBAGENT_CHANNEL;
    return !isHelper || (await helpers.get(chat))?.state !== 'cancelled';
  };
}
