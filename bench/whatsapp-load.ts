// What the WhatsApp benchmark's processes have in common.

/** Pacing as good as none. */
export const UNPACED = {
  chatPerMinute: 10_000,
  accountPerMinute: 10_000,
  minGapMs: 0,
  maxGapMs: 0,
  identicalTexts: 1000,
};

/** The answer to a message with a nonce in it. */
export function nonceAnswer(text: string): string {
  return `You said ${/nonce-\w+/.exec(text)?.[0] ?? 'nothing'}.`;
}
