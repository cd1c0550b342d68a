// Takes a mail out of the inbox, into the folder that the server marks as the archive. The one place
// where something of others in the mailbox changes, and only at the owner's word. Case of doubt: left
// alone.

import { NanobotError } from '../../kernel/message/errors.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { ArchiveError } from '../channel.ts';
import type { MailAccount } from './connection-settings.ts';
import { ImapConnection, type MailFolder, type OpenMailbox } from './imap-connection.ts';
import type { MailRegister } from './mail-register.ts';
import { byMessageId } from './mail-summary.ts';

export type ArchiveDeps = {
  readonly account: MailAccount;
  readonly mailbox: string;
  readonly register: MailRegister;
  readonly clock: Clock;
};

/** A mail that is not in the inbox any more is archived already. @throws ArchiveError */
export async function archiveMail(
  deps: ArchiveDeps,
  id: MessageId,
  signal: AbortSignal,
): Promise<void> {
  const { account, clock } = deps;
  try {
    const connection = await ImapConnection.connect(account, clock, signal);
    await moveAway(connection, deps, id).finally(() => connection[Symbol.asyncDispose]());
  } catch (error) {
    if (error instanceof ArchiveError || !(error instanceof NanobotError)) throw error;
    throw new ArchiveError('archive_failed', 'the mail server did not do it', error);
  }
}

async function moveAway(connection: ImapConnection, deps: ArchiveDeps, id: MessageId) {
  // Gmail keeps everything in All Mail: what is moved there only leaves the inbox.
  const uses = connection.isGmail ? ['\\All'] : ['\\Archive'];
  const folder = folderOf(await connection.folders(), uses);
  if (folder === undefined)
    throw new ArchiveError('no_archive', 'the mailbox has no archive folder');
  if (folder === deps.mailbox) return;
  const opened = await connection.open(deps.mailbox, false);
  const uid = await uidOf(connection, opened, deps.register, id);
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
  if (messageId === undefined) throw new ArchiveError('mail_lost', 'I do not find it any more');
  const found = await connection.search(byMessageId(messageId));
  if (found.length > 1) throw new ArchiveError('mail_twice', 'it is there more than once');
  return found[0];
}

// The Sent folder: our copies go there once, unless the server files them itself, and a send whose
// fate is unknown is looked up there.

/** Servers that file what they send by themselves; a copy of ours would be a second one. */
const FILES_ITSELF = /(^|\.)(gmail|googlemail|office365|outlook)\.com$/i;

/** A copy the server will not take must not keep new mail waiting. */
const MAX_COPY_TRIES = 3;

export function serverFilesSentMail(smtpHost: string): boolean {
  return FILES_ITSELF.test(smtpHost);
}

/** Where a sent mail can be found: everything, or what was sent. */
export function folderOf(
  folders: readonly MailFolder[],
  uses: readonly string[],
): string | undefined {
  return uses
    .map((use) => folders.find((folder) => folder.specialUse === use)?.path)
    .find((path) => path !== undefined);
}

/** Stores the copies that wait; the mailbox must be opened again afterwards. */
export async function storeCopies(
  connection: ImapConnection,
  register: MailRegister,
  log: Logger,
): Promise<void> {
  const pending = await register.pendingCopies();
  if (pending.length === 0) return;
  const folder = folderOf(await connection.folders(), ['\\Sent']);
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

/** Whether a mail of ours stands among those the server sent; undefined where it cannot tell. */
export async function wasSent(
  connection: ImapConnection,
  messageId: string,
): Promise<boolean | undefined> {
  const folder = folderOf(await connection.folders(), ['\\Sent', '\\All']);
  return folder === undefined ? undefined : holds(connection, folder, messageId);
}
