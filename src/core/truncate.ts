// Cuts long texts so that the cut announces itself. The beginning and the end stay, because errors
// and totals tend to stand last.

import { cutBefore, cutBehind } from './cut.ts';

/** Share of the kept characters that the beginning gets. */
const HEAD_SHARE = 0.7;

/**
 * At most `maxChars` UTF-16 units, the marker included: `[truncated, 12,345 characters omitted: hint]`.
 * No sign is halved. A limit too small for the marker keeps the marker alone.
 */
export function truncateText(text: string, maxChars: number, hint: string): string {
  if (text.length <= maxChars) return text;
  // The count cannot have more digits than the whole text's length.
  const room = Math.max(0, maxChars - markerOf(text.length, hint).length);
  const headEnd = cutBefore(text, Math.ceil(room * HEAD_SHARE));
  const tailStart = cutBehind(text, text.length - (room - headEnd));
  const marker = markerOf(tailStart - headEnd, hint);
  return `${text.slice(0, headEnd)}${marker}${text.slice(tailStart)}`;
}

function markerOf(omitted: number, hint: string): string {
  return `\n[truncated, ${omitted.toLocaleString('en-US')} characters omitted: ${hint}]\n`;
}

/** The lines from the beginning that fit into `maxChars`, whole lines only. */
export function keepFirstLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = text.lastIndexOf('\n', maxChars);
  return end < 0 ? '' : text.slice(0, end);
}

/** The lines up to the end that fit into `maxChars`, whole lines only. */
export function keepLastLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  // A line may begin exactly where the room begins, so the break before it counts too.
  const start = text.indexOf('\n', text.length - maxChars - 1);
  return start < 0 ? '' : text.slice(start + 1);
}
