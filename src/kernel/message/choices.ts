// Choices where a platform has no buttons: the labels are numbered below the text, and the number is
// the answer.

import { renderPlain } from '../../lib/markup/markup.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { Choice, OutboundMessage } from './message.ts';

/** The message with its choices as a numbered list in its text. */
export function withNumbers(message: OutboundMessage): OutboundMessage {
  const { choices = [], markdown, ...rest } = message;
  if (choices.length === 0) return { ...rest, markdown };
  return { ...rest, markdown: `${markdown}\n\n${numberedLabels(choices)}` };
}

function numberedLabels(choices: readonly Choice[]): string {
  const lines = choices.map(({ label }, index) => `${index + 1}. ${label}`);
  return `${lines.join('\n')}\n\nAnswer with the number.`;
}

// What came of a press, in the few words that fit beside the button. The whole text stands in the chat.

/** UTF-16 units; Telegram shows no more (Bot API, answerCallbackQuery). */
const MAX_UNITS = 200;

/** Empty where there is nothing to show. */
export function toastOf(markdown: string): string {
  const [first = ''] = renderPlain(markdown)
    .trim()
    .split(/\n{2,}/);
  const line = first.replace(/\s+/gu, ' ').trim();
  return shortened(line, MAX_UNITS);
}
