// Replaces the values of known secrets wherever they turn up: log lines, error texts.

/** Shorter values would blank out ordinary words. */
const MIN_SECRET_CHARS = 6;
const MASK = '[redacted]';

export type Redactor = (text: string) => string;

export function createRedactor(secrets: readonly string[]): Redactor {
  // Longest first, so that a secret that contains another leaves no rest behind.
  const values = [...new Set(secrets.flatMap(spellings))].sort((a, b) => b.length - a.length);
  return (text) => values.reduce((result, value) => result.replaceAll(value, MASK), text);
}

/** As typed, as JSON writes it and as it stands in a URL. */
function spellings(secret: string): readonly string[] {
  if (secret.length < MIN_SECRET_CHARS) return [];
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}
