// A draft as the question an owner is asked: the whole text with Send, Edit and Drop, or the wait for
// another text.

import { accountName } from '../../kernel/message/account.ts';
import type { Question } from '../../kernel/questions/questions.ts';
import { type Draft, hashOfDraft } from './draft-rows.ts';
import { draftText, editText, recipientsOf } from './rules/letter.ts';

export const DRAFT_HOURS = 24;
const LIFETIME_MS = DRAFT_HOURS * 3_600_000;

export const questionId = ({ id, version }: Draft) => `draft/${id}/${version}`;

/** Undefined where the text is too long to be shown whole. */
export function questionOf(draft: Draft, now: number, alwaysDays: number): Question | undefined {
  const { letter, chat, name, turn, isTainted, shownIn, state, at } = draft;
  const subject = letter.kind === 'mail' ? letter.subject : undefined;
  const { asker } = turn;
  const text = {
    to: name,
    channel: accountName(chat),
    subject,
    asker,
    isTainted,
    hours: DRAFT_HOURS,
  };
  const [, ...cc] = recipientsOf(letter);
  const shown = draftText({ ...text, cc, markdown: letter.markdown });
  if (shown === undefined) return undefined;
  const first =
    state === 'editing'
      ? [{ label: 'Keep the text', action: 'keep' }]
      : [
          { label: 'Send', action: 'send' },
          { label: 'Edit', action: 'edit' },
        ];
  const mayStand = alwaysDays > 0 && !isTainted && turn.whose !== undefined && state === 'open';
  const always = mayStand ? [{ label: 'Send, always to them', action: 'always' }] : [];
  return {
    id: questionId(draft),
    chat: shownIn,
    markdown: state === 'editing' ? editText(name) : shown,
    choices: [...first, { label: 'Drop', action: 'drop' }, ...always],
    approvers: 'owners',
    subject: `draft:${hashOfDraft(draft)}:${draft.id}`,
    expiresInMs: Math.max(0, at + LIFETIME_MS - now),
  };
}
