// One device of a person towards the account's linked device: its Signal sessions, what it sent and
// what it could read. Device 0 is the phone; others are devices the person linked to it.

import { Line } from './line.ts';
import { Reader } from './reader.ts';
import { createReceipts } from './receipts.ts';
import type { Account } from './seams.ts';
import { createSentMail, type SentMail } from './sent-mail.ts';
import type { SavedSignalDevice } from './signal-device.ts';

export type Handset = {
  readonly device: number;
  readonly line: Line;
  readonly reader: Reader;
  readonly mail: SentMail;
};

type HandsetOptions = {
  readonly device: number;
  readonly now: () => number;
  /** Whether it tells the linked device what it got. */
  readonly confirms: boolean;
  readonly saved?: SavedSignalDevice | undefined;
};

export function createHandset(account: Account, options: HandsetOptions): Handset {
  const line = new Line(account, options.saved);
  const receipts = createReceipts(account, line, options.now);
  return {
    device: options.device,
    line,
    reader: new Reader(line, receipts, options.confirms),
    mail: createSentMail(account, line),
  };
}
