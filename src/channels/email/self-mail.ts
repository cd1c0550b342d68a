// A mail of a mailbox to itself, which proves both ways: out by SMTP, seen again by IMAP. It carries the mark
// of our own mails, so nothing of ours answers it (RFC 3834).

import type { ImapConnection, Mailbox } from './imap-connection.ts';
import { byMessageId } from './mail-reader.ts';
import { domainOf } from './rules/address.ts';
import { OWN_MARK_HEADER } from './rules/machine-mail.ts';
import { sendBySmtp } from './smtp.ts';

const LOOK_MS = 2_000;

type SelfMail = {
  /** Names it in its Message-ID. */
  readonly name: string;
  readonly subject: string;
  readonly text: string;
};

/** Returns its Message-ID. @throws DeliveryError */
export async function sendToOurselves(
  { account, clock }: Mailbox,
  { name, subject, text }: SelfMail,
  signal: AbortSignal,
): Promise<string> {
  const { from } = account;
  const messageId = `<${name}@${domainOf(from)}>`;
  const raw = [
    `From: <${from}>`,
    `To: <${from}>`,
    `Subject: ${subject}`,
    `Date: ${new Date(clock.now()).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${messageId}`,
    'Auto-Submitted: auto-generated',
    'X-Auto-Response-Suppress: All',
    `${OWN_MARK_HEADER}: ${name}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    '',
    text,
    '',
  ].join('\r\n');
  await sendBySmtp(account, from, Buffer.from(raw), signal);
  return messageId;
}

/** Its UID, once it is there. @throws ChannelError, the signal's reason */
export async function arrivalOf(
  connection: ImapConnection,
  { folder }: Mailbox,
  messageId: string,
  signal: AbortSignal,
): Promise<number> {
  const never = new Promise<void>(() => undefined);
  await connection.open(folder);
  for (;;) {
    const [uid] = await connection.search(byMessageId(messageId));
    if (uid !== undefined) return uid;
    await connection.waitForMail(LOOK_MS, never, signal);
    signal.throwIfAborted();
  }
}
