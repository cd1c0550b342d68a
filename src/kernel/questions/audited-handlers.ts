// The handlers of answers to questions, as features contribute them. Decisions among them are entered in the
// audit file, whether they came by a button, a number or the page.

import type { Contributed } from '../contributions.ts';
import type { AuditLog } from '../observe/telemetry.ts';
import type { QuestionHandler } from './question.ts';

export type Handlers = Readonly<Record<string, QuestionHandler>>;

/** By the kind of the subject, as contributed so far. */
export function auditedHandlers(
  contributed: Pick<Contributed, 'answers'>,
  audit: AuditLog,
): Handlers {
  const wrapped = [...contributed.answers()].map(([subject, { handler, audited: kind }]) => {
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
