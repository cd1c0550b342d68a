// Regular expressions from untrusted sources: matched in time linear in the text (RE2), so that no
// pattern stops the process (case X16). Look-around and back references are not supported.

/** `message` is suitable for the model and for people. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

export type LinearPattern = Pick<RegExp, 'test'>;

const MAX_PATTERN_CHARS = 500;

/** Ignores case. @throws PatternError */
export async function linearPattern(source: string): Promise<LinearPattern> {
  if (source.length > MAX_PATTERN_CHARS) {
    throw new PatternError(`the pattern is longer than ${MAX_PATTERN_CHARS} characters`);
  }
  const { RE2JS } = await import('re2js');
  try {
    const pattern = RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
    return { test: (line) => pattern.matcher(line).find() };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unreadable';
    throw new PatternError(`this is no regular expression in RE2 syntax: ${why}`, { cause });
  }
}
