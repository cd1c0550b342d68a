// Looks into the mailbox for the agent, over a connection of its own that changes nothing there: what was
// unread stays unread.

import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { InboxMail, InboxQuestion, InboxText } from '../channel.ts';
import { type Inbox, InboxError } from '../channel.ts';
import type { MailAccount } from './connection-settings.ts';
import { ImapConnection } from './imap-connection.ts';
import { MailReader } from './mail-reader.ts';
import { spoolMail } from './mail-spool.ts';
import type { MailHead } from './mail-summary.ts';
import type { DnsLookup } from './parsed-mail.ts';
import { visibleText } from './rules/text.ts';

export type InboxDeps = {
  readonly account: MailAccount;
  readonly mailbox: string;
  readonly clock: Clock;
  readonly lookup?: DnsLookup;
};

const MAX_SHOWN_CHARS = 200;

export function createInbox(deps: InboxDeps): Inbox {
  return {
    find: (question, signal) => opened(deps, signal, (open) => find(open, question, deps, signal)),
    read: (id, signal) => opened(deps, signal, (open) => read(open, id, deps)),
  };
}

type Open = { readonly connection: ImapConnection; readonly uidValidity: string };

async function opened<T>(
  { account, mailbox, clock }: InboxDeps,
  signal: AbortSignal,
  use: (open: Open) => Promise<T>,
): Promise<T> {
  try {
    const connection = await ImapConnection.connect(account, clock, signal);
    try {
      const { uidValidity } = await connection.open(mailbox);
      return await use({ connection, uidValidity });
    } finally {
      await connection[Symbol.asyncDispose]();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InboxError) throw error;
    throw new InboxError('the mail server did not answer', error);
  }
}

async function find(
  { connection, uidValidity }: Open,
  { words, isUnreadOnly, count }: InboxQuestion,
  deps: InboxDeps,
  signal: AbortSignal,
): Promise<readonly InboxMail[]> {
  const unread = isUnreadOnly ? { seen: false } : {};
  const queries = words.length === 0 ? [{ all: true }] : words.map((text) => ({ text }));
  let uids: readonly number[] | undefined;
  for (const query of queries) {
    const found = await connection.search({ ...query, ...unread });
    uids = uids === undefined ? found : uids.filter((uid) => found.includes(uid));
  }
  const newest = (uids ?? []).slice(-count);
  if (newest.length === 0) return [];
  const heads = await connection
    .heads(newest)
    .catch((error) => headsOneByOne(newest, error, deps, signal));
  return heads.map((head) => mailOf(head, uidValidity)).reverse();
}

/** A server may end the connection at a mail that it cannot read; the others are shown without it. */
async function headsOneByOne(
  uids: readonly number[],
  cause: unknown,
  deps: InboxDeps,
  signal: AbortSignal,
): Promise<readonly MailHead[]> {
  const heads: MailHead[] = [];
  for (const uid of uids) {
    const found = opened(deps, signal, ({ connection }) => connection.heads([uid]));
    heads.push(...(await found.catch(() => [])));
    signal.throwIfAborted();
  }
  if (heads.length === 0) throw cause;
  return heads;
}

async function read(
  { connection, uidValidity }: Open,
  id: string,
  { clock, lookup }: InboxDeps,
): Promise<InboxText> {
  const [validity, uid] = id.split('.');
  const [head] =
    validity === uidValidity && /^\d+$/.test(uid ?? '')
      ? await connection.heads([Number(uid)])
      : [];
  const mail =
    head === undefined ? undefined : await spoolMail(connection.pieces(head.uid, Number.NaN));
  if (head === undefined || mail === undefined)
    throw new InboxError('this mail is not there any more');
  const reader = new MailReader({ clock, ...(lookup === undefined ? {} : { lookup }) });
  const { result } = await reader.read(mail.raw).finally(async () => {
    await reader[Symbol.asyncDispose]();
    await mail[Symbol.asyncDispose]();
  });
  if (result.kind === 'unreadable') throw new InboxError('this mail cannot be read');
  const { text, attachments } = result.mail;
  const names = attachments.map(({ name }) => shown(name ?? 'a file without a name'));
  return { ...mailOf(head, uidValidity), text: visibleText(text), attachments: names };
}

function mailOf(
  { uid, from, subject, arrivedAtMs, isSeen }: MailHead,
  uidValidity: string,
): InboxMail {
  return {
    id: `${uidValidity}.${uid}`,
    from: shown(from),
    subject: shown(subject),
    at: arrivedAtMs,
    isUnread: !isSeen,
  };
}

const shown = (text: string) =>
  headOf(visibleText(text).replace(/\s+/g, ' ').trim(), MAX_SHOWN_CHARS);
