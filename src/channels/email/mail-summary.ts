// What is known of a mail without reading it.

import type { FetchMessageObject } from 'imapflow';

export type MailSummary = {
  readonly uid: number;
  readonly bytes: number;
  /** Epoch milliseconds at which the server took the mail in. */
  readonly arrivedAtMs: number;
  /** The Message-ID and Date fields, as they stand in the mail. */
  readonly idFields: string;
};

/** What people look at in a list of mails. */
export type MailHead = Pick<MailSummary, 'uid' | 'arrivedAtMs'> & {
  /** Name and address, as the mail says. */
  readonly from: string;
  readonly subject: string;
  readonly isSeen: boolean;
};

export function summaryOf(mail: FetchMessageObject): MailSummary | undefined {
  if (mail.size === undefined || mail.headers === undefined) return undefined;
  return {
    uid: mail.uid,
    bytes: mail.size,
    arrivedAtMs: new Date(mail.internalDate ?? Number.NaN).getTime(),
    idFields: mail.headers.toString('utf8').trim(),
  };
}

export function headOf({ uid, envelope, flags, internalDate }: FetchMessageObject): MailHead {
  const [sender] = envelope?.from ?? [];
  const { name = '', address = '' } = sender ?? {};
  return {
    uid,
    from: name === '' ? address : `${name} <${address}>`,
    subject: envelope?.subject ?? '',
    arrivedAtMs: new Date(internalDate ?? Number.NaN).getTime(),
    isSeen: flags?.has('\\Seen') ?? false,
  };
}

/** For a search of the server's. */
export const byMessageId = (messageId: string) => ({ header: { 'message-id': messageId } });
