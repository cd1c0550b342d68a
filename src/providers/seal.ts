// Signatures of thinking are valid for the model that gave them and for no other, so they are stored
// with its name and handed back to that model alone.

import type { ThinkingBlock } from '../kernel/message/transcript.ts';

const SEPARATOR = ' ';

export const sealed = (model: string, signature: string) => `${model}${SEPARATOR}${signature}`;

/** The signature if this model gave it. */
export function unsealed(block: ThinkingBlock, model: string): string | undefined {
  const start = `${model}${SEPARATOR}`;
  return block.signature?.startsWith(start) === true
    ? block.signature.slice(start.length)
    : undefined;
}
