// A mail of ours to ourselves: out by SMTP, seen again by IMAP, then put into the trash. It carries the
// mark of our own mails, so it is read by nobody here and never answered (RFC 3834).

import { channelName, chatId, DEFAULT_ACCOUNT, messageId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { folderOf } from './archive.ts';
import type { MailAccount } from './connection-settings.ts';
import { ImapConnection } from './imap-connection.ts';
import { byMessageId } from './mail-summary.ts';
import { composeMail } from './outbound.ts';
import { sendBySmtp } from './smtp.ts';

const LOOK_MS = 2000;

export type MailTestDeps = {
  readonly account: MailAccount;
  readonly mailbox: string;
  readonly clock: Clock;
};

/** @throws DeliveryError, ChannelError */
export async function* testMailbox(
  { account, mailbox, clock }: MailTestDeps,
  nonce: string,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const { from } = account;
  const id = `<self-test.${nonce}@${from.slice(from.lastIndexOf('@') + 1)}>`;
  await sendBySmtp(account, from, await testMail(from, id, nonce, clock.now()), signal);
  yield 'sent';
  const connection = await ImapConnection.connect(account, clock, signal);
  try {
    await connection.open(mailbox);
    const uid = await arrival(connection, id, signal);
    yield 'arrived';
    const trash = folderOf(await connection.folders(), ['\\Trash']);
    if (trash === undefined || trash === mailbox) return;
    await connection.open(mailbox, false);
    if (await connection.move(uid, trash)) yield 'removed';
  } finally {
    await connection[Symbol.asyncDispose]();
  }
}

async function arrival(
  connection: ImapConnection,
  id: string,
  signal: AbortSignal,
): Promise<number> {
  const never = new Promise<void>(() => undefined);
  for (;;) {
    const [uid] = await connection.search(byMessageId(id));
    if (uid !== undefined) return uid;
    await connection.waitForMail(LOOK_MS, never, signal);
    signal.throwIfAborted();
  }
}

function testMail(from: string, mailId: string, nonce: string, now: number): Promise<Buffer> {
  const markdown = 'A mail of nanobot to itself, to test the way out and in. Nothing answers it.';
  const message: OutboundMessage = {
    id: messageId(`self-test/${nonce}`),
    chat: { channel: channelName('email'), account: DEFAULT_ACCOUNT, chat: chatId(from) },
    markdown,
  };
  return composeMail({
    ...{ message, packed: { markdown, files: [] }, thread: nonce, recipient: from, from },
    quote: undefined,
    record: {
      messageId: mailId,
      dateMs: now,
      subject: `nanobot self-test ${nonce}`,
      references: [],
      triedAt: now,
      isSent: false,
    },
  });
}
