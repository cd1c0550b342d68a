// What came of a press, in the few words that fit beside the button. The whole text stands in the chat.

import { shortened } from './cut.ts';
import { renderPlain } from './markup/plain.ts';

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
