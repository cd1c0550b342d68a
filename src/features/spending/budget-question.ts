// What an owner is asked when a budget is used up, and what the answer does.

import type { ChatRef } from '../../kernel/message/message.ts';
import type { Question, QuestionHandler } from '../../kernel/questions/questions.ts';
import { MORE_PERCENT, type UsedUp } from './budget-notes.ts';
import type { SpendingDesk } from './spending-desk.ts';

/** The kind of the question's subject. */
export const BUDGET_SUBJECT = 'budget';

export function budgetQuestion(usedUp: UsedUp, chat: ChatRef): Question {
  const { id, text, key, day, extraPercent, leftMs } = usedUp;
  return {
    ...{ id, chat },
    markdown: text,
    choices: [
      { label: `Allow ${MORE_PERCENT} % more today`, action: 'more' },
      { label: 'Keep the limit', action: 'keep' },
    ],
    approvers: 'owners',
    subject: `${BUDGET_SUBJECT}:${day}|${extraPercent}|${key}`,
    expiresInMs: leftMs,
  };
}

export function createBudgetAnswers(desk: SpendingDesk): QuestionHandler {
  return {
    async answer(rest, action) {
      if (action !== 'more') return 'The limit stays as it is.';
      const [day = '', extra, ...key] = rest.split('|');
      // Carried out twice after a crash, it must not allow twice as much.
      const meant = { key: key.join('|'), day, extraPercent: Number(extra) };
      const raised = await desk.raise(MORE_PERCENT, meant);
      return raised.length === 0
        ? 'Nothing is changed: more was allowed already, or that day is over.'
        : `${MORE_PERCENT} % more for today: ${raised.join(', ')}.`;
    },
  };
}
