// `/cron add` as people type it in a chat: when, a colon, and what.

import type { JobWish } from './job.ts';

const HEAD =
  /^(say\s+|workflow\s+)?(?:(every\s+[^:]+?)|((?:at|in)\s+.+?)|((?:[\d*/,A-Za-z#L-]+\s+){4}[\d*/,A-Za-z#L-]+))\s*:\s+([\s\S]+)$/i;

/** Undefined where it is not of that form. */
export function parseHead(typed: string): JobWish | undefined {
  const match = HEAD.exec(typed);
  if (match === null) return undefined;
  const [, how, every, moment, cron, text = ''] = match;
  const at = moment?.replace(/^at\s+/i, '');
  const kind = how === undefined ? 'ask' : how.trim().toLowerCase() === 'say' ? 'say' : 'workflow';
  return { kind, text, ...(every && { every }), ...(at && { at }), ...(cron && { cron }) };
}
