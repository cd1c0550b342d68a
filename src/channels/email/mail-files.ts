// The files of mails: named by the mail's place in the mailbox when it arrives, fetched from there
// when somebody let in is to be answered. All files of one mail are read at once and kept a minute.

import type { Worker } from 'node:worker_threads';
import type { Attachment } from '../../core/attachment.ts';
import { kindOfPart, type SortedParts } from '../../core/mail-parts.ts';
import { visibleText } from '../../core/mail-text.ts';
import { orAborted } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import { AttachmentError } from '../channel.ts';
import { ImapConnection } from './imap-connection.ts';
import { startWorker } from './mail-reader.ts';
import { MAX_MAIL_BYTES } from './mime-limits.ts';
import type { FromParser, ToParser } from './parsed-mail.ts';
import type { MailAccount } from './settings.ts';

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
    name: visibleText(part.name).replace(/\s+/g, ' ').trim(),
    mimeType: part.type,
    sizeBytes: part.bytes,
    content: { kind: 'remote', ref: `${uidValidity}/${uid}/${part.index}` },
  }));
}

export type MailFilesDeps = {
  readonly account: MailAccount;
  readonly mailbox: string;
  readonly clock: Clock;
};

type Contents = Promise<readonly Uint8Array[]>;

export class MailFiles implements AsyncDisposable {
  readonly #deps: MailFilesDeps;
  readonly #stop = new AbortController();
  readonly #mails = new Map<string, Contents>();

  constructor(deps: MailFilesDeps) {
    this.#deps = deps;
  }

  /** @throws AttachmentError */
  async *fetch(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const [, uidValidity = '', uid = '', index = ''] = REF.exec(ref) ?? [];
    const mail = `${uidValidity}/${uid}`;
    const known = this.#mails.get(mail) ?? this.#read({ uidValidity, uid: Number(uid) });
    this.#mails.set(mail, known);
    const forget = () => this.#mails.delete(mail);
    known.then(() => this.#deps.clock.sleep(KEEP_MS, this.#stop.signal)).then(forget, forget);
    const contents = await orAborted(known, signal);
    const content = contents[Number(index)];
    if (content === undefined) throw gone('its mail is another one now');
    yield content;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#mails.values());
  }

  async #read(place: MailPlace): Contents {
    return readFiles(await this.#source(place), this.#deps.clock, this.#stop.signal);
  }

  async #source({ uidValidity, uid }: MailPlace): Promise<Buffer> {
    const { account, clock, mailbox } = this.#deps;
    const connection = await ImapConnection.connect(account, clock, this.#stop.signal);
    try {
      const opened = await connection.open(mailbox);
      if (opened.uidValidity !== uidValidity) throw gone('the server has renumbered its mailbox');
      const [summary] = await connection.summaries([uid]);
      if (summary === undefined) throw gone('its mail is no longer in the mailbox');
      if (summary.bytes > MAX_MAIL_BYTES) throw gone('its mail is too large');
      const source = await connection.source(uid);
      if (source === undefined) throw gone('its mail is no longer in the mailbox');
      return source;
    } finally {
      await connection[Symbol.asyncDispose]();
    }
  }
}

const gone = (reason: string) => new AttachmentError('attachment_gone', reason, { isFinal: true });

/** The memory it stands in, to be handed over where nothing else stands there. */
function memoryOf({ buffer, byteLength }: Uint8Array): readonly ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}

/** In a thread of its own, which has no more time or memory than the one that parses mails. */
async function readFiles(raw: Uint8Array, clock: Clock, signal: AbortSignal): Contents {
  const worker: Worker = startWorker();
  const done = Promise.withResolvers<readonly Uint8Array[]>();
  const unreadable = () => done.reject(gone('its mail cannot be read'));
  worker.once('error', unreadable).once('exit', unreadable);
  worker.on('message', (message: FromParser) => {
    if (message.kind === 'files') done.resolve(message.contents);
  });
  const limit = clock.timer(PARSE_LIMIT_MS, unreadable);
  try {
    const request: ToParser = { kind: 'files', raw };
    worker.postMessage(request, memoryOf(raw));
    return await orAborted(done.promise, signal);
  } finally {
    limit[Symbol.dispose]();
    await worker.terminate();
  }
}
