// Reads the mailbox for the agent over a connection of its own that changes no flag, and moves a
// mail to the archive when the owner asks for it.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { headOf, oneLine, visibleText } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  ArchiveError,
  type Inbox,
  InboxError,
  type InboxMail,
  type InboxQuestion,
  type InboxText,
} from '../channel.ts';
import {
  type ImapConnection,
  type Mailbox,
  type OpenMailbox,
  withConnection,
} from './imap-connection.ts';
import { byMessageId, type DnsLookup, type MailHead, MailReader } from './mail-reader.ts';
import type { MailRegister } from './mail-register.ts';
import { spoolMail } from './mail-spool.ts';

const MAX_SHOWN_CHARS = 200;

export function createInbox(mailbox: Mailbox, lookup: DnsLookup | undefined): Inbox {
  return {
    find: (question, signal) => opened(mailbox, signal, (open) => find(open, question, signal)),
    read: (id, signal) => opened(mailbox, signal, (open) => read(open, id, lookup)),
  };
}

type Open = {
  readonly mailbox: Mailbox;
  readonly connection: ImapConnection;
  readonly uidValidity: string;
};

async function opened<T>(
  mailbox: Mailbox,
  signal: AbortSignal,
  use: (open: Open) => Promise<T>,
): Promise<T> {
  try {
    return await withConnection(mailbox, signal, async (connection) => {
      const { uidValidity } = await connection.open(mailbox.folder);
      return use({ mailbox, connection, uidValidity });
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InboxError) throw error;
    throw new InboxError('the mail server did not answer', error);
  }
}

async function find(
  { mailbox, connection, uidValidity }: Open,
  { words, isUnreadOnly, count }: InboxQuestion,
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
    .catch((error) => headsOneByOne(newest, error, mailbox, signal));
  return heads.map((head) => mailOf(head, uidValidity)).reverse();
}

/** A server may close the connection at a mail that it cannot read: shows the others. */
async function headsOneByOne(
  uids: readonly number[],
  cause: unknown,
  mailbox: Mailbox,
  signal: AbortSignal,
): Promise<readonly MailHead[]> {
  const heads: MailHead[] = [];
  for (const uid of uids) {
    const found = opened(mailbox, signal, ({ connection }) => connection.heads([uid]));
    heads.push(...(await found.catch(() => [])));
    signal.throwIfAborted();
  }
  if (heads.length === 0) throw cause;
  return heads;
}

async function read(
  { mailbox: { clock }, connection, uidValidity }: Open,
  id: string,
  lookup: DnsLookup | undefined,
): Promise<InboxText> {
  const [validity, uid = ''] = id.split('.');
  const isHere = validity === uidValidity && /^\d+$/.test(uid);
  const [head] = isHere ? await connection.heads([Number(uid)]) : [];
  const mail = head && (await spoolMail(connection.pieces(head.uid, Number.NaN)));
  if (head === undefined || mail === undefined)
    throw new InboxError('this mail is no longer there');
  const reader = new MailReader({ clock, lookup });
  const { result } = await reader.read(mail.raw).finally(async () => {
    await reader[Symbol.asyncDispose]();
    await mail[Symbol.asyncDispose]();
  });
  if (result.kind === 'unreadable') throw new InboxError('this mail cannot be read');
  const { text, attachments } = result.mail;
  const names = attachments.map(({ name }) => shown(name));
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

const shown = (text: string) => headOf(oneLine(visibleText(text)), MAX_SHOWN_CHARS);

// Moves a mail from the inbox to the folder that the server marks as the archive. The only place
// that changes mails of the owner, and only at the owner's request. In case of doubt the mail
// stays.

/** A mail that is no longer in the inbox counts as archived. @throws ArchiveError */
export async function archiveMail(
  mailbox: Mailbox,
  register: MailRegister,
  id: MessageId,
  signal: AbortSignal,
): Promise<void> {
  try {
    await withConnection(mailbox, signal, (connection) =>
      moveAway(connection, mailbox.folder, register, id),
    );
  } catch (error) {
    if (error instanceof ArchiveError || !(error instanceof NanobotError)) throw error;
    throw new ArchiveError('archive_failed', 'the mail server did not carry it out', error);
  }
}

async function moveAway(
  connection: ImapConnection,
  inbox: string,
  register: MailRegister,
  id: MessageId,
) {
  // Gmail keeps everything in All Mail: moving a mail there only removes it from the inbox.
  const folder = await folderFor(connection, connection.isGmail ? '\\All' : '\\Archive');
  if (folder === undefined)
    throw new ArchiveError('no_archive', 'the mailbox has no archive folder');
  if (folder === inbox) return;
  const opened = await connection.open(inbox, false);
  const uid = await uidOf(connection, opened, register, id);
  if (uid === undefined || (await connection.move(uid, folder))) return;
  throw new ArchiveError('archive_refused', 'the mail server refused it');
}

async function uidOf(
  connection: ImapConnection,
  { uidValidity }: OpenMailbox,
  register: MailRegister,
  id: MessageId,
): Promise<number | undefined> {
  const mail = await register.parent(id);
  const place = mail?.place;
  if (place?.uidValidity === uidValidity) {
    const [there] = await connection.summaries([place.uid]);
    return there?.uid;
  }
  const messageId = mail?.messageId;
  if (messageId === undefined) throw new ArchiveError('mail_lost', 'it can no longer be found');
  const found = await connection.search(byMessageId(messageId));
  if (found.length > 1) throw new ArchiveError('mail_twice', 'there is more than one copy');
  return found[0];
}

// The Sent folder: stores copies there once, unless the server files them itself, and looks there
// for a mail whose sending has an unknown outcome.

/** Servers that file sent mail themselves; a copy would be a duplicate. */
const FILES_ITSELF = /(^|\.)(gmail|googlemail|office365|outlook)\.com$/i;

/** A copy that the server refuses must not delay new mail. */
const MAX_COPY_TRIES = 3;

export function serverFilesSentMail(smtpHost: string): boolean {
  return FILES_ITSELF.test(smtpHost);
}

/** The folder where a sent mail can be found: all mail, or sent mail. */
export async function folderFor(
  connection: ImapConnection,
  ...uses: readonly string[]
): Promise<string | undefined> {
  const folders = await connection.folders();
  return uses
    .map((use) => folders.find((folder) => folder.specialUse === use)?.path)
    .find((path) => path !== undefined);
}

/** Stores the waiting copies; the mailbox must be opened again afterwards. */
export async function storeCopies(
  connection: ImapConnection,
  register: MailRegister,
  log: Logger,
): Promise<void> {
  const pending = await register.pendingCopies();
  if (pending.length === 0) return;
  const folder = await folderFor(connection, '\\Sent');
  for (const { key, copy } of pending) {
    if (folder === undefined || copy.tries >= MAX_COPY_TRIES) {
      log.info('no copy of a sent mail was stored', { hasFolder: folder !== undefined });
    } else if (copy.tries === 0 || !(await holds(connection, folder, copy.messageId))) {
      await register.noteCopyTried(key, copy);
      await connection.append(folder, Buffer.from(copy.rawBase64, 'base64'), copy.dateMs);
    }
    await register.noteCopied(key);
  }
}

async function holds(connection: ImapConnection, folder: string, messageId: string) {
  await connection.open(folder);
  return (await connection.search(byMessageId(messageId))).length > 0;
}

/** Whether a mail is among those the server sent; undefined if it cannot be determined. */
export async function wasSent(
  connection: ImapConnection,
  messageId: string,
): Promise<boolean | undefined> {
  const folder = await folderFor(connection, '\\Sent', '\\All');
  return folder === undefined ? undefined : holds(connection, folder, messageId);
}

// The position in the mailbox: the last UID, and the mails before it that could not be read yet.
// The UID only grows, so no list of seen mails is needed; flags belong to the owner and are never
// read (cases E04 to E07).

export type MailCursor = {
  readonly uidValidity: string;
  /** Everything up to this UID is done. */
  readonly uid: number;
  /** Epoch milliseconds of the first start: older mail is never answered. */
  readonly since: number;
};

export const formatCursor = (cursor: MailCursor) =>
  `${cursor.uidValidity}:${cursor.uid}:${cursor.since}`;

export function parseCursor(text = ''): MailCursor | undefined {
  const match = /^(\d+):(\d+):(\d+)$/.exec(text);
  if (match === null) return undefined;
  const [, uidValidity = '', uid, since] = match;
  return { uidValidity, uid: Number(uid), since: Number(since) };
}

// Mails that cannot be read now, because the server fails at them or the name service does not
// answer. They wait here while later mails are handled. Each is retried at growing intervals over a
// connection of its own, because a server may close the connection at such a mail.

export type DeferredMail = {
  readonly uidValidity: string;
  readonly uid: number;
  readonly tries: number;
  /** Epoch milliseconds. */
  readonly dueAt: number;
  /** Set for a renumbered mailbox, where the mail may be old: older mails are not answered. */
  readonly since?: number | undefined;
};

const DEFERRED = rowShape<DeferredMail>({
  ...{ uidValidity: text, uid: number, tries: number, dueAt: number },
});

export const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 3_600_000;
/** About six hours. */
export const MAX_TRIES = 16;
/** A failure that lasts longer than half a minute is reported to the owner. */
export const TOLD_TRIES = 4;
/** A limit, because each of them costs a connection at every try. */
const MAX_DEFERRED = 200;

export class DeferredMails {
  readonly #state: KeyValueStore;
  readonly #clock: Clock;

  constructor(state: KeyValueStore, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Those of this numbering (UIDVALIDITY); the rescan finds those of an earlier one again. */
  async list(uidValidity: string): Promise<readonly DeferredMail[]> {
    const rows = await this.#state.list('later/');
    return rows
      .flatMap(({ value }) => jsonRow(value, DEFERRED) ?? [])
      .filter((mail) => mail.uidValidity === uidValidity)
      .sort((a, b) => a.dueAt - b.dueAt);
  }

  async isFull(uidValidity: string): Promise<boolean> {
    return (await this.list(uidValidity)).length >= MAX_DEFERRED;
  }

  /** Records one more failed try. */
  async defer(mail: DeferredMail): Promise<void> {
    const tries = mail.tries + 1;
    const waitMs = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (tries - 1));
    const row: DeferredMail = { ...mail, tries, dueAt: this.#clock.now() + waitMs };
    await this.#state.set(keyOf(mail), JSON.stringify(row));
  }

  async settle(mail: DeferredMail): Promise<void> {
    await this.#state.delete(keyOf(mail));
  }
}

const keyOf = ({ uidValidity, uid }: DeferredMail) =>
  `later/${uidValidity}/${String(uid).padStart(10, '0')}`;
