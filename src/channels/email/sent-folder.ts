// The Sent folder: our copies go there once, unless the server files them itself, and a send whose
// fate is unknown is looked up there.

import type { Logger } from '../../lib/logger.ts';
import type { ImapConnection, MailFolder } from './imap-connection.ts';
import type { MailRegister } from './mail-register.ts';
import { byMessageId } from './mail-summary.ts';

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
