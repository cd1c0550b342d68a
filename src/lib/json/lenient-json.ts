// JSON as small models write it among other words: the objects of a text, and slips of the hand put right.
// What an object means is left to whoever asked.

import { parseJson } from './fields.ts';

const THOUGHT = /<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)/gi;

/** What a model says without what it thought aloud. */
export const withoutThoughts = (text: string) => text.replace(THOUGHT, ' ');

/** Keys without quotes, single quotes, commas before the end. */
export function repaired(json: string): unknown {
  return (
    parseJson(json) ??
    parseJson(
      json
        .replace(/'((?:[^'\\\n]|\\.)*)'(?=\s*[:,}\]])/g, (_, inner) => JSON.stringify(inner))
        .replace(/([{,]\s*)([A-Za-z_]\w*)(?=\s*:)/g, '$1"$2"')
        .replace(/,(?=\s*[}\]])/g, ''),
    )
  );
}

/** Everything between braces that belong together, outermost first. */
export function objectsIn(text: string): readonly string[] {
  const found: string[] = [];
  let [depth, start, inString] = [0, 0, false];
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString && char === '\\') at += 1;
    else if (char === '"' && depth > 0) inString = !inString;
    else if (inString) continue;
    else if (char === '{') {
      if (depth === 0) start = at;
      depth += 1;
    } else if (char === '}' && depth > 0) {
      depth -= 1;
      if (depth === 0) found.push(text.slice(start, at + 1));
    }
  }
  return found;
}
