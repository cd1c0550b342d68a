// Choices where a platform has no buttons: the labels are numbered below the text, and the number is
// the answer.

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
