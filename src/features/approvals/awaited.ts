// Whether anybody still waits for an owner's yes: what was ended by hand, a workflow or a helper, does
// nothing more, also where the question was not yet answered.

import type { Collections } from '../../app/collections.ts';
import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { SUBAGENT_CHANNEL } from '../subagents/rules/subagent.ts';
import { isOver, WORKFLOW_CHANNEL } from '../workflows/rules/workflow.ts';
import { WORKFLOWS_SCOPE, WorkflowBook } from '../workflows/workflow-book.ts';

/** `chat`: of the turn that asked. */
export function createIsAwaited(
  store: StateStore,
  { subagents }: Collections,
): (chat: ChatRef) => Promise<boolean> {
  const workflows = new WorkflowBook(store.scope(WORKFLOWS_SCOPE), (text) => text);
  return async ({ channel, chat }) => {
    if (channel === WORKFLOW_CHANNEL) {
      const run = await workflows.get(chat);
      return run !== undefined && !isOver(run);
    }
    const isHelper = channel === SUBAGENT_CHANNEL;
    return !isHelper || (await subagents.runs.get(chat))?.state !== 'cancelled';
  };
}
