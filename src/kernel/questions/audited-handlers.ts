// What people decide, entered into the audit file: every answer to a question of ours passes here,
// whether it came by a button, a number or the page. What is no decision is not entered.

import { BUDGET_SUBJECT } from '../../features/spending/budget-question.ts';
import type { AuditEvent, AuditLog } from '../observe/telemetry.ts';
import type { QuestionHandler } from './question.ts';

export type Handlers = Readonly<Record<string, QuestionHandler>>;

/** By the kind of the subject. */
const KINDS: Readonly<Record<string, AuditEvent['kind']>> = {
  approval: 'approval',
  draft: 'letter',
  mail: 'letter',
  stranger: 'person',
  [BUDGET_SUBJECT]: 'configuration',
};

export function auditedHandlers(handlers: Handlers, audit: AuditLog): Handlers {
  const wrapped = Object.entries(handlers).map(([subject, handler]) => {
    const kind = KINDS[subject];
    if (kind === undefined) return [subject, handler] as const;
    const answer: QuestionHandler['answer'] = async (rest, action, who, at) => {
      const words = await handler.answer(rest, action, who, at);
      audit.note({ kind, fields: { subject, about: rest, action, by: who.id } });
      return words;
    };
    return [subject, { ...handler, answer }] as const;
  });
  return Object.fromEntries(wrapped);
}
