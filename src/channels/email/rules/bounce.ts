// Delivery reports (RFC 3464) about mails of ours: whether one failed for good, which, and why in our
// own words. What the report says in prose is somebody else's text and is not passed on.

import { normalizeAddress } from './address.ts';
import { headerValue, type MailHeaders, messageIdsIn, parseHeaderBlock } from './headers.ts';

export type BounceReport = {
  /** Message ids in what was returned of the mail; ours is among them. */
  readonly originalIds: readonly string[];
  /** The address that failed, where the report names one. */
  readonly recipient?: string;
  /** E.g. `5.1.1 (no such address)`. */
  readonly reason: string;
};

/** Decoded parts of a report, by content type in lower case. */
export type ReportPart = { readonly type: string; readonly text: string };

const STATUS_TYPES = /^message\/(global-)?delivery-status$/;
const RETURNED_TYPES =
  /^(message\/(rfc822|global|global-headers|rfc822-headers)|text\/rfc822-headers)$/;
const MAX_STATUS_BLOCKS = 50;

/** RFC 3463: what the second and third number of a status stand for, the closest first. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/^\d\.1\.[136]$/, 'no such address'],
  [/^\d\.1\.2$/, 'no such mail domain'],
  [/^\d\.1\.10$/, 'that domain takes no mail'],
  [/^\d\.1\./, 'the address was not accepted'],
  [/^\d\.2\.1$/, 'the mailbox is switched off'],
  [/^\d\.2\.2$/, 'the mailbox is full'],
  [/^\d\.2\.3$/, 'the mail is too large'],
  [/^\d\.2\./, 'the mailbox takes no mail'],
  [/^\d\.3\./, 'trouble in the receiving mail system'],
  [/^\d\.4\.7$/, 'it could not be delivered in time'],
  [/^\d\.4\./, 'the receiving mail system cannot be reached'],
  [/^\d\.5\./, 'the mail systems did not understand each other'],
  [/^\d\.6\./, 'the content was not accepted'],
  [/^\d\.7\./, 'refused by the receiving mail system’s rules'],
];

/** The report of a final failure in these parts, or undefined: a delay or a success is none. */
export function readBounce(parts: readonly ReportPart[]): BounceReport | undefined {
  const status = parts.find(({ type }) => STATUS_TYPES.test(type));
  if (status === undefined) return undefined;
  const failed = blocksOf(status.text).find(
    (block) => headerValue(block, 'action')?.trim().toLowerCase() === 'failed',
  );
  if (failed === undefined) return undefined;
  const returned = parts.filter(({ type }) => RETURNED_TYPES.test(type));
  const originalIds = returned.flatMap(({ text }) => returnedIds(text));
  const recipient = recipientOf(failed);
  return {
    originalIds: [...new Set(originalIds)],
    ...(recipient === undefined ? {} : { recipient }),
    reason: reasonOf(headerValue(failed, 'status') ?? ''),
  };
}

/** Fields about the report, then one block for each recipient (RFC 3464 section 2.1). */
function blocksOf(text: string): readonly MailHeaders[] {
  const blocks = text.replace(/\r\n?/g, '\n').split(/\n{2,}/, MAX_STATUS_BLOCKS);
  return blocks.map(parseHeaderBlock);
}

/** Only the header names the mail; its body may quote others. */
function returnedIds(text: string): readonly string[] {
  const [block = ''] = text.replace(/\r\n?/g, '\n').trimStart().split('\n\n', 1);
  return messageIdsIn(headerValue(parseHeaderBlock(block), 'message-id'));
}

/** The address we wrote to, not the one it was forwarded to, where the report knows both. */
function recipientOf(block: MailHeaders): string | undefined {
  const value = headerValue(block, 'original-recipient') ?? headerValue(block, 'final-recipient');
  const address =
    value
      ?.split(';', 2)[1]
      ?.trim()
      .replace(/^<(.*)>$/, '$1') ?? '';
  return normalizeAddress(address);
}

function reasonOf(field: string): string {
  const status = /^\s*([245]\.\d{1,3}\.\d{1,3})\b/.exec(field)?.[1];
  if (status === undefined) return 'no reason given';
  const meaning = MEANINGS.find(([pattern]) => pattern.test(status))?.[1];
  return meaning === undefined ? status : `${status} (${meaning})`;
}
