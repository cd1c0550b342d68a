// What an owner is asked when a budget is used up, and what the answer does.

import type { ChatRef } from '../core/message.ts';
import { MORE_PERCENT, type UsedUp } from './budget-notes.ts';
import type { Question, QuestionHandler } from './questions.ts';
import type { SpendingDesk } from './spending-desk.ts';

/** The kind of the question's subject. */
export const BUDGET_SUBJECT = 'budget';

export function budgetQuestion({ id, text, key, day, leftMs }: UsedUp, chat: ChatRef): Question {
  return {
    ...{ id, chat },
    markdown: text,
    choices: [
      { label: `Allow ${MORE_PERCENT} % more today`, action: 'more' },
      { label: 'Keep the limit', action: 'keep' },
    ],
    approvers: 'owners',
    subject: `${BUDGET_SUBJECT}:${day}|${key}`,
    expiresInMs: leftMs,
  };
}

export function createBudgetAnswers(desk: SpendingDesk): QuestionHandler {
  return {
    async answer(rest, action) {
      if (action !== 'more') return 'The limit stays as it is.';
      const [day, ...key] = rest.split('|');
      const raised = await desk.raise(MORE_PERCENT, { key: key.join('|'), day: day ?? '' });
      return raised.length === 0
        ? 'That day is over: the budget has begun anew.'
        : `${MORE_PERCENT} % more for today: ${raised.join(', ')}.`;
    },
  };
}
