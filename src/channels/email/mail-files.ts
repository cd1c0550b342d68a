// The files of mails: identified by the mail's place in the mailbox on arrival, and fetched from
// there when an admitted sender is answered. All files of one mail are read at once and cached on
// disk for a minute.

import type { Worker } from 'node:worker_threads';
import type { Attachment } from '../../kernel/message/attachment.ts';
import { MAX_MAIL_BYTES, type RawMail } from '../../lib/mail/raw-mail.ts';
import { oneLine, visibleText } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import { AttachmentError } from '../channel.ts';
import { type Mailbox, withConnection } from './imap-connection.ts';
import { type FromParser, type MailReader, startWorker, type ToParser } from './mail-reader.ts';
import { MailContents, openNameless, type SpooledMail, spoolMail } from './mail-spool.ts';
import { kindOfPart, type SortedParts } from './rules/address.ts';

const PARSE_LIMIT_MS = 20_000;
const KEEP_MS = 60_000;

/** A mail's place in its mailbox. */
export type MailPlace = { readonly uidValidity: string; readonly uid: number };

const REF = /^(\d+)\/(\d+)\/(\d+)$/;

export function filesOf(
  { carried }: SortedParts,
  { uidValidity, uid }: MailPlace,
): readonly Attachment[] {
  return carried.map((part) => ({
    kind: kindOfPart(part),
    name: oneLine(visibleText(part.name)),
    mimeType: part.type,
    sizeBytes: part.bytes,
    content: { kind: 'remote', ref: `${uidValidity}/${uid}/${part.index}` },
  }));
}

export class MailFiles implements AsyncDisposable {
  readonly #mailbox: Mailbox;
  readonly #reader: Pick<MailReader, 'rest'>;
  readonly #stop = new AbortController();
  readonly #mails = new Map<string, Promise<MailContents>>();
  readonly #kept = new Set<Promise<void>>();

  constructor(mailbox: Mailbox, reader: Pick<MailReader, 'rest'>) {
    this.#mailbox = mailbox;
    this.#reader = reader;
  }

  /** @throws AttachmentError */
  async *fetch(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const [, uidValidity = '', uid = '', index = ''] = REF.exec(ref) ?? [];
    const place = { uidValidity, uid: Number(uid) };
    const contents = await this.#open(`${uidValidity}/${uid}`, place, signal);
    if (!contents.has(Number(index))) throw gone(t`its mail has changed`);
    yield* contents.read(Number(index));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#kept);
  }

  async #open(mail: string, place: MailPlace, signal: AbortSignal): Promise<MailContents> {
    for (;;) {
      const known = this.#mails.get(mail) ?? this.#readAndKeep(mail, place);
      const contents = await orAborted(known, signal);
      if (contents.isOpen) return contents;
    }
  }

  #readAndKeep(mail: string, place: MailPlace): Promise<MailContents> {
    const reading = this.#read(place);
    this.#mails.set(mail, reading);
    const kept = this.#keepAWhile(mail, reading).finally(() => this.#kept.delete(kept));
    this.#kept.add(kept);
    return reading;
  }

  async #keepAWhile(mail: string, reading: Promise<MailContents>): Promise<void> {
    const contents = await reading.catch(() => undefined);
    if (contents !== undefined) {
      await this.#mailbox.clock.sleep(KEEP_MS, this.#stop.signal).catch(() => undefined);
    }
    this.#mails.delete(mail);
    contents?.close();
  }

  async #read(place: MailPlace): Promise<MailContents> {
    await using mail = await this.#fetch(place);
    // Frees memory for the thread that reads files.
    await this.#reader.rest();
    return await extractFiles(mail.raw, this.#mailbox.clock, this.#stop.signal);
  }

  #fetch({ uidValidity, uid }: MailPlace): Promise<SpooledMail> {
    return withConnection(this.#mailbox, this.#stop.signal, async (connection) => {
      const opened = await connection.open(this.#mailbox.folder);
      if (opened.uidValidity !== uidValidity) throw gone(t`the server has renumbered its mailbox`);
      const [summary] = await connection.summaries([uid]);
      if (summary !== undefined && summary.bytes > MAX_MAIL_BYTES)
        throw gone(t`its mail is too large`);
      const mail = summary && (await spoolMail(connection.pieces(uid, summary.bytes)));
      if (mail === undefined) throw gone(t`its mail is no longer in the mailbox`);
      return mail;
    });
  }
}

const gone = (reason: string) => new AttachmentError('attachment_gone', reason, { isFinal: true });

/** The folder may be cleaned up meanwhile. */
const noRoom = () =>
  new AttachmentError('attachment_no_room', t`the temporary folder is full`, {
    isFinal: false,
  });

/**
 * Writes the files of a mail one behind the other into a file, in a thread with the same time and
 * memory limits as the parser. `openFile`: opens the target, which is closed with the contents.
 * @throws AttachmentError
 */
export async function extractFiles(
  raw: RawMail,
  clock: Clock,
  signal: AbortSignal,
  openFile = openNameless,
): Promise<MailContents> {
  const file = await openFile();
  const worker: Worker = startWorker();
  const done = Promise.withResolvers<readonly number[]>();
  const unreadable = () => done.reject(gone(t`its mail cannot be read`));
  worker.once('error', unreadable).once('exit', unreadable);
  worker.on('message', (message: FromParser) => {
    if (message.kind === 'files') done.resolve(message.sizes);
    if (message.kind === 'no_room') done.reject(noRoom());
  });
  using _limit = clock.timer(PARSE_LIMIT_MS, unreadable);
  try {
    const request: ToParser = { kind: 'files', raw, into: file.fd };
    worker.postMessage(request);
    const contents = new MailContents(file, await orAborted(done.promise, signal));
    await worker.terminate();
    return contents;
  } catch (error) {
    // The writing thread must end before its descriptor number can be reused.
    await worker.terminate();
    await file.close();
    throw error;
  }
}
