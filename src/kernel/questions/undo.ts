// Undo of an action that ran without an approval at a person's request: a line in the chat with one
// button, for an hour. Only on channels with buttons: elsewhere a number typed for another question
// would undo it.

import { t } from '../../lib/texts.ts';
import { accountName } from '../message/ids.ts';
import { type ChatRef, idsOf, type Sender } from '../message/message.ts';
import type { ChannelDirectory } from '../owners.ts';
import { LIFETIME_MS, type QuestionHandler } from './question-rows.ts';
import type { Questions } from './questions.ts';

type UndoOffer = {
  /** Kind of the subject; its handler undoes the action of `id`. */
  readonly subject: string;
  readonly id: string;
  /** Markdown: what was done. */
  readonly text: string;
  readonly to: { readonly chat: ChatRef; readonly sender: Sender };
};

export type OfferUndo = (offer: UndoOffer) => Promise<void>;

export function createUndo({
  questions,
  channels,
}: {
  readonly questions: Pick<Questions, 'ask'>;
  readonly channels: Pick<ChannelDirectory, 'get'>;
}): OfferUndo {
  return async ({ subject, id, text, to: { chat, sender } }) => {
    const hasButtons = channels.get(accountName(chat))?.choices !== undefined;
    if (!hasButtons || sender.kind !== 'person') return;
    await questions.ask({
      id: `${subject}/${id}`,
      chat,
      markdown: text,
      choices: [{ label: t`Undo`, action: 'undo' }],
      approvers: idsOf(sender),
      subject: `${subject}:${id}`,
      expiresInMs: LIFETIME_MS.undo,
    });
  };
}

/** Handles the press. `takeBack`: false if there is nothing left to undo. */
export const undoHandler = (takeBack: (id: string) => Promise<boolean>): QuestionHandler => ({
  answer: async ({ rest }) => ((await takeBack(rest)) ? t`Undone.` : t`It is gone already.`),
  // The receipt stays as it is; only its button goes.
  expired: async () => '',
});
