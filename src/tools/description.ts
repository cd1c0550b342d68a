// What a tool tells the model, from descriptions/<tool>.md: the first paragraph goes with the
// tool's schema, the rest, when to use it and when not, into the system prompt. Read at start-up.

import { readFileSync } from 'node:fs';

export type ToolTexts = { readonly description: string; readonly guidance: string };

export function readDescription(tool: string): ToolTexts {
  const text = readFileSync(new URL(`./descriptions/${tool}.md`, import.meta.url), 'utf8').trim();
  const end = text.indexOf('\n\n');
  if (end < 0) return { description: text, guidance: '' };
  return { description: text.slice(0, end), guidance: text.slice(end).trim() };
}
