// Takes a mail out of the inbox, into the folder that the server marks as the archive. The one place
// where something of others in the mailbox changes, and only at the owner's word. Case of doubt: left
// alone.

import { NanobotError } from '../../core/errors.ts';
import type { MessageId } from '../../core/ids.ts';
import type { Clock } from '../../lib/clock.ts';
import { ArchiveError } from '../channel.ts';
import { ImapConnection, type OpenMailbox } from './imap-connection.ts';
import type { MailRegister } from './mail-register.ts';
import { byMessageId } from './mail-summary.ts';
import { folderOf } from './sent-folder.ts';
import type { MailAccount } from './settings.ts';

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
