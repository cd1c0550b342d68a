// The editing power: an answer that grows in one card. A draft is best effort: what Lark has no time for
// is skipped, never queued, so that the final text is not held up behind it.

import type { MessageId } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { runsText } from '../../lib/markup/writer.ts';
import type { Editing } from '../channel.ts';
import { TEXT_UNITS } from './cards.ts';
import { isCardRefused, isGone, toDeliveryError } from './failures.ts';
import type { Target } from './messages.ts';
import { asCard, type PartsDeps, sendCard, uuidOf } from './parts.ts';
import { beginningForLark } from './rules/markup.ts';

/** Lark takes five changes of one message a second, all apps of a group together. */
const MIN_EDIT_INTERVAL_MS = 1000;
/** Source text beyond this cannot be part of one card, whatever its markup. */
const MAX_SOURCE_CHARS = 4 * TEXT_UNITS;

export type DraftDeps = Pick<PartsDeps, 'messages' | 'log'> & {
  targetOf(chat: ChatRef, replyTo: MessageId | undefined): Promise<Target>;
};

export function createDrafts({ messages, log, targetOf }: DraftDeps): Editing {
  const beginning = (markdown: string) => ({
    runs: beginningForLark(markdown.slice(0, MAX_SOURCE_CHARS), TEXT_UNITS),
  });

  return {
    minIntervalMs: MIN_EDIT_INTERVAL_MS,
    isFoundAgain: true,
    async place(chat, markdown, { replyTo, name, signal }) {
      try {
        const target = await targetOf(chat, replyTo);
        const uuid = name === undefined ? undefined : uuidOf(`${name}#draft`);
        return await sendCard(target, beginning(markdown), uuid, signal, { messages, log });
      } catch (error) {
        throw toDeliveryError(error, false);
      }
    },
    async edit(_chat, draft, markdown, signal) {
      const card = beginning(markdown);
      if (runsText(card.runs).trim() === '') return;
      try {
        await asCard(card, log(), (json) => messages.change(draft, json, signal));
      } catch (error) {
        if (isCardRefused(error)) return;
        throw toDeliveryError(error, true);
      }
    },
    async remove(_chat, draft, signal) {
      try {
        await messages.remove(draft, signal);
      } catch (error) {
        if (!isGone(error)) throw toDeliveryError(error, true);
      }
    },
  };
}
