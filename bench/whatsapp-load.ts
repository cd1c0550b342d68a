// What the processes of the WhatsApp benchmark share.

/** Effectively no pacing. */
export const UNPACED = {
  chatPerMinute: 10_000,
  accountPerMinute: 10_000,
  minGapMs: 0,
  maxGapMs: 0,
  identicalTexts: 1000,
};

/** The answer to a message that contains a nonce. */
export function nonceAnswer(text: string): string {
  return `You said ${/nonce-\w+/.exec(text)?.[0] ?? 'nothing'}.`;
}
