// The messages by which helpers begin and their parents hear of their end. Each has an id that is the
// same every time, so that one that is sent again after a crash is a duplicate.

import { createHash } from 'node:crypto';
import {
  type MessageId,
  messageId,
  type SessionKey,
  type TurnId,
} from '../../kernel/message/ids.ts';
import type { InboundMessage, SystemSender } from '../../kernel/message/message.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { ToolContext } from '../../tools/tool.ts';
import {
  endText,
  type HelperRun,
  type HelperWish,
  helperChat,
  helperRights,
  SubagentError,
  signalText,
  taskText,
} from './rules/subagent.ts';

/** Of a result that is told; `check` shows all of it. */
const MAX_TOLD_CHARS = 12_000;

export const taskMessageId = (id: string): MessageId => messageId(`subagent/${id}/task`);

export function taskMessage(run: HelperRun, now: number): InboundMessage {
  return {
    ...{ id: taskMessageId(run.id), chat: helperChat(run.id), addressing: 'direct' },
    sender: { ...senderFor(run), rights: helperRights(run), ...tainted(run.parent.isTainted) },
    text: taskText(run),
    ...{ sentAt: now, receivedAt: now },
  };
}

/** `name`: of what happened, the same each time. */
export function endMessage(run: HelperRun, name: string, now: number): InboundMessage {
  const { parent, isForeign } = run;
  const isTainted = parent.isTainted || isForeign === true;
  return {
    ...{ id: messageId(`subagent/${run.id}/${name}`), addressing: 'direct' },
    ...{ chat: parent.chat, session: parent.session },
    sender: { ...senderFor(run), rights: parent.rights, ...tainted(isTainted) },
    text: `${endText(run, now)}\n\n${resultText(run)}`,
    ...{ sentAt: now, receivedAt: now },
  };
}

/** `name`: of what was said, the same each time. */
export function signalMessage(
  run: HelperRun,
  { name, said, isForeign }: { name: string; said: string; isForeign: boolean },
  now: number,
): InboundMessage {
  const { parent, id } = run;
  const isTainted = parent.isTainted || isForeign;
  const words = wrapUntrusted('report of a helper', [{ text: said }], newBoundary());
  return {
    ...{ id: messageId(`subagent/${id}/critical-${name}`), addressing: 'direct' },
    ...{ chat: parent.chat, session: parent.session },
    sender: { ...senderFor(run), rights: parent.rights, ...tainted(isTainted) },
    text: `${signalText(run)}\n\n${words}`,
    ...{ sentAt: now, receivedAt: now },
  };
}

/** Said in the chat as it is: nobody has to answer it. */
export function killMessage(run: HelperRun, now: number): InboundMessage {
  const { parent, label, id } = run;
  return {
    ...{ id: messageId(`subagent/${id}/killed-${run.attempt}`), addressing: 'direct' },
    ...{ chat: parent.chat, session: parent.session },
    sender: { ...senderFor(run), ...tainted(parent.isTainted) },
    text: `The helper "${label}" (${id}) was ended by hand.`,
    announces: { attachments: [] },
    ...{ sentAt: now, receivedAt: now },
  };
}

/** A report, not an order: whatever stands in it. */
export function resultText({ result = '' }: Pick<HelperRun, 'result'>): string {
  const whole = result.trim() === '' ? 'It gave no answer.' : result;
  const text = shortened(whole, MAX_TOLD_CHARS, '\n[cut here]');
  return wrapUntrusted('result of a helper', [{ text }], newBoundary());
}

function senderFor({ parent }: HelperRun): SystemSender {
  return { kind: 'system', source: 'subagent', person: parent.person, ...parent.payer };
}

const tainted = (isTainted: boolean) => (isTainted ? ({ isTainted } as const) : {});

// By what a helper is known: what was asked, and where.

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

// Whether what a turn said may hold words of others: what it was shown may stand in what it says.

/** In doubt, where nothing is recorded of it, it may. */
export async function isForeignTurn(
  sessions: Pick<SessionStore, 'turn'>,
  session: SessionKey,
  turn: TurnId,
): Promise<boolean> {
  const entries = await sessions.turn(session, turn);
  return entries.length === 0 || entries.some((entry) => 'isForeign' in entry);
}
