// The arguments of a call that was made before, when there is no room for them any more: they stay
// readable JSON of the same shape, with the middle of each long text left out.

import { readJson } from '../../lib/json/json.ts';
import { truncateText } from '../../lib/text/cut.ts';

const MAX_TEXT_CHARS = 500;
const WHY = 'left out of what you see to fit the context window; the call had it all';

/** `json` itself where nothing in it is long. What is no JSON is cut as a whole. */
export function shortArguments(json: string): string {
  if (json.length <= MAX_TEXT_CHARS) return json;
  const read = readJson(json);
  // As model servers are shown it anyway.
  const value = read.kind === 'parsed' ? read.value : { unreadable: json };
  const short = JSON.stringify(shortened(value));
  return short.length < json.length ? short : json;
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string') return truncateText(value, MAX_TEXT_CHARS, WHY);
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]));
}
