// The messages by which runs of workflows begin, go on after an owner decided, and are told of. Each has
// an id that is the same every time, so that one that is sent again after a crash is a duplicate.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import { type MessageId, messageId } from '../../kernel/message/ids.ts';
import type { InboundMessage, SystemSender } from '../../kernel/message/message.ts';
import { jobChat } from '../schedule/rules/job.ts';
import {
  type WorkflowRun,
  type WorkflowStarter,
  workflowChat,
  workflowRights,
} from './rules/workflow.ts';

export const beginId = (id: string): MessageId => messageId(`workflow/${id}/begin`);

export function beginMessage(run: WorkflowRun, now: number): InboundMessage {
  return inOwnChat(run, run.begunBy, now);
}

/** `why`: the message that says there is something to go on with. */
export function wakeMessage(run: WorkflowRun, why: MessageId, now: number): InboundMessage {
  return inOwnChat(run, messageId(`workflow/${run.id}/wake/${why}`), now);
}

function inOwnChat(run: WorkflowRun, id: MessageId, now: number): InboundMessage {
  return {
    ...{ id, chat: workflowChat(run.id), addressing: 'direct', text: `[workflow ${run.workflow}]` },
    sender: { ...senderFor(run.starter), rights: workflowRights(run.starter) },
    ...{ sentAt: now, receivedAt: now },
  };
}

export function senderFor({ person, payer }: WorkflowStarter): SystemSender {
  return { kind: 'system', source: 'workflow', person, ...payer };
}

/** Says it where the run belongs, once under this name; durable when resolved. */
export async function tellHome(
  { id, starter, state }: WorkflowRun,
  told: { readonly name: string; readonly text: string; readonly now: number },
  bus: Pick<MessageBus, 'accept' | 'send'>,
): Promise<void> {
  const { name, text, now } = told;
  const said = messageId(`workflow/${id}/${name}`);
  const { home } = starter;
  if (home.kind === 'job') {
    await bus.send({ id: said, chat: jobChat(home.job), markdown: text });
    return;
  }
  const { isTainted: isForeign } = state;
  const message: InboundMessage = {
    ...{ id: said, chat: home.chat, session: home.session, addressing: 'direct', text },
    sender: { ...senderFor(starter), ...(isForeign ? { isTainted: true } : {}) },
    announces: { attachments: [] },
    ...{ sentAt: now, receivedAt: now },
  };
  await bus.accept([{ kind: 'queue', message }]);
}
