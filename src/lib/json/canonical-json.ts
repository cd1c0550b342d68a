// JSON in one spelling: what means the same compares the same, whatever the order of its keys.

/** Text that is no JSON stays as it is, without the blanks around it. */
export function canonicalJson(text: string): string {
  try {
    return JSON.stringify(ordered(JSON.parse(text)));
  } catch {
    return text.trim();
  }
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, ordered(inner)] as const);
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}
