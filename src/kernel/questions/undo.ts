// Takes back what was done at a person's word without an approval: a line in the chat with one button, for an
// hour. Only where buttons can be pressed: elsewhere a number said about something else would take it back.

import { accountName } from '../message/ids.ts';
import { type ChatRef, idsOf, type Sender } from '../message/message.ts';
import type { ChannelRegister } from '../owners.ts';
import type { QuestionHandler } from './question-rows.ts';
import type { Questions } from './questions.ts';

type UndoOffer = {
  /** Kind of the subject; its handler takes back what `id` names. */
  readonly subject: string;
  readonly id: string;
  /** Markdown: what was done. */
  readonly text: string;
  readonly to: { readonly chat: ChatRef; readonly sender: Sender };
};

export type OfferUndo = (offer: UndoOffer) => Promise<void>;

const EXPIRES_MS = 3_600_000;

export function createUndo({
  questions,
  channels,
}: {
  readonly questions: Pick<Questions, 'ask'>;
  readonly channels: Pick<ChannelRegister, 'get'>;
}): OfferUndo {
  return async ({ subject, id, text, to: { chat, sender } }) => {
    const hasButtons = channels.get(accountName(chat))?.choices !== undefined;
    if (!hasButtons || sender.kind !== 'person') return;
    await questions.ask({
      id: `${subject}/${id}`,
      chat,
      markdown: text,
      choices: [{ label: 'Undo', action: 'undo' }],
      approvers: idsOf(sender),
      subject: `${subject}:${id}`,
      expiresInMs: EXPIRES_MS,
    });
  };
}

/** Answers the press. `takeBack`: false where there is nothing left to take back. */
export const undoHandler = (takeBack: (id: string) => Promise<boolean>): QuestionHandler => ({
  answer: async (id) => ((await takeBack(id)) ? 'Undone.' : 'It is gone already.'),
});
