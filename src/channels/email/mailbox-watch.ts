// Follows one mailbox over one connection: lists what is new, reads and hands over each mail
// together with the cursor after it, then waits in IDLE, at most for the poll interval. A failure
// ends the connection; the next one reads mail by mail, so that a mail that cannot be read is found
// and deferred. The cursor advances only with what is durable.

import { verbatim } from '../../kernel/message/untrusted.ts';
import {
  MAX_HEADER_BYTES,
  MAX_MAIL_BYTES,
  type RawMail,
  splitHeader,
} from '../../lib/mail/raw-mail.ts';
import { shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { fingerprintOf, type MailArrival } from './arrival.ts';
import { serverFault } from './connection-settings.ts';
import { ImapConnection, type Mailbox, type OpenMailbox } from './imap-connection.ts';
import { type InboundContext, type Incoming, readIncoming, unreadableMail } from './inbound.ts';
import {
  type DeferredMail,
  DeferredMails,
  formatCursor,
  MAX_TRIES,
  type MailCursor,
  MIN_RETRY_MS,
  parseCursor,
  storeCopies,
  TOLD_TRIES,
} from './inbox.ts';
import {
  type MailReader,
  type MailReading,
  type MailSummary,
  NO_SIGNATURES,
} from './mail-reader.ts';
import { inMemory, type SpooledMail, spoolMail } from './mail-spool.ts';
import { parseHeaderBlock } from './rules/address.ts';
import type { EmailConfig } from './settings.ts';

/** How far back a renumbered mailbox is searched. */
const RESCAN_MS = 14 * 86_400_000;
const SUMMARY_CHUNK = 100;
const MAX_REASON_CHARS = 200;

/** The mailbox that is followed. */
type WatchContext = InboundContext & {
  readonly host: ChannelHost;
  readonly config: EmailConfig;
  readonly mailbox: Mailbox;
  readonly reader: MailReader;
  /** A connection ended while mails were read, possibly because of one of them. */
  readonly progress: { isInterrupted: boolean };
  /** Resolves when something besides new mail needs the connection; a new promise for each wait. */
  nextWake(): Promise<void>;
};

/** A second connection, opened on demand and again after it was closed. */
type Spare = {
  /**
   * The first connection if the server allows no second.
   * @throws ChannelError if the server cannot be reached at all
   */
  get(): Promise<ImapConnection>;
  close(): Promise<void>;
};

type Listed = Pick<OpenMailbox, 'uidValidity'> & { readonly summary: MailSummary };

export class MailboxWatch {
  readonly #context: WatchContext;
  readonly #connection: ImapConnection;
  readonly #deferred: DeferredMails;
  readonly #works: () => void;

  /** `works`: called when the mailbox has been read, so the connection is usable. */
  constructor(context: WatchContext, connection: ImapConnection, works: () => void) {
    const { host } = context;
    this.#context = context;
    this.#connection = connection;
    this.#deferred = new DeferredMails(host.state, host.clock);
    this.#works = works;
  }

  /** Runs until aborted; rejects with ChannelError when the connection is no longer usable. */
  async run(signal: AbortSignal): Promise<void> {
    const { host, config, register, progress } = this.#context;
    while (!signal.aborted) {
      const wake = this.#context.nextWake();
      const mailbox = await this.#connection.open(config.mailbox);
      const isInterrupted = progress.isInterrupted;
      progress.isInterrupted = true;
      await this.#catchUp(mailbox, isInterrupted, signal);
      progress.isInterrupted = false;
      this.#works();
      this.#reportActive();
      if ((await register.pendingCopies()).length > 0) {
        // Leaves the mailbox, so new mail is looked for before waiting.
        await storeCopies(this.#connection, register, host.log);
        continue;
      }
      const dueAt = await this.#retryDeferred(mailbox, signal);
      const waitMs = Math.max(MIN_RETRY_MS, dueAt - host.clock.now());
      const pollMs = config.pollSecs * 1000;
      await this.#connection.waitForMail(Math.min(pollMs, waitMs), wake, signal);
    }
  }

  #reportActive(): void {
    const { host, account } = this.#context;
    const [own] = account.own;
    host.report({ kind: 'running', activeAt: host.clock.now(), account: own });
  }

  /** `isCareful`: reads each mail separately. */
  async #catchUp(mailbox: OpenMailbox, isCareful: boolean, signal: AbortSignal): Promise<void> {
    const { host } = this.#context;
    const now = host.clock.now();
    const stored = parseCursor(await host.cursor());
    const { uidValidity } = mailbox;
    const uid = Math.max(0, mailbox.uidNext - 1);
    const newest = { uidValidity, uid, since: stored?.since ?? now };
    if (stored?.uidValidity === uidValidity) {
      const uids = await this.#connection.uidsAfter(stored.uid);
      const mails = uids.map((each) => newcomer(mailbox, each));
      return this.#takeAll(mails, isCareful, signal, (each) => ({ ...stored, uid: each }));
    }
    if (stored !== undefined) {
      // The server renumbered the mailbox: new mails are recognised by content, not by UID.
      const since = Math.max(stored.since, now - RESCAN_MS);
      const uids = await this.#connection.search({ since: new Date(since) });
      host.log.warn('mailbox was renumbered', { count: uids.length });
      const known = uids.filter((each) => each <= uid);
      const mails = known.map((each) => newcomer(mailbox, each, stored.since));
      await this.#takeAll(mails, isCareful, signal);
    }
    if (!signal.aborted) await this.#commit([], newest);
  }

  /** Without `cursorAt` the position in the mailbox stays. */
  async #takeAll(
    mails: readonly DeferredMail[],
    isCareful: boolean,
    signal: AbortSignal,
    cursorAt?: (uid: number) => MailCursor,
  ): Promise<void> {
    if (isCareful) return this.#takeEach(mails, signal, cursorAt);
    for (let at = 0; at < mails.length; at += SUMMARY_CHUNK) {
      const chunk = mails.slice(at, at + SUMMARY_CHUNK);
      const summaries = await this.#connection.summaries(chunk.map(({ uid }) => uid));
      this.#reportActive();
      for (const mail of chunk) {
        if (signal.aborted) return;
        const summary = summaries.find(({ uid }) => uid === mail.uid);
        // Undefined: deleted meanwhile.
        if (summary !== undefined) await this.#take(mail, summary, cursorAt?.(mail.uid));
        else if (mail === chunk.at(-1)) await this.#commit([], cursorAt?.(mail.uid));
      }
    }
  }

  async #isOld(summary: MailSummary, since: number): Promise<boolean> {
    const { register } = this.#context;
    return summary.arrivedAtMs < since || register.isKnownFingerprint(fingerprintOf(summary));
  }

  /** Reads one mail and hands it over. */
  async #take(mail: DeferredMail, summary: MailSummary, cursor: MailCursor | undefined) {
    const { since, uidValidity } = mail;
    if (since !== undefined && (await this.#isOld(summary, since))) return;
    const isLast = await this.#deferred.isFull(uidValidity);
    const listed = { uidValidity, summary };
    const incoming = await this.#read(this.#connection, listed, { tries: 0, isLast });
    if (incoming === 'unproven yet') await this.#deferred.defer(mail);
    await this.#handOver(incoming, cursor);
  }

  /** Reads mail by mail, each over a connection that it may break. */
  async #takeEach(
    mails: readonly DeferredMail[],
    signal: AbortSignal,
    cursorAt?: (uid: number) => MailCursor,
  ): Promise<void> {
    await this.#withSpare(mails[0]?.uidValidity, signal, async (spare) => {
      for (const mail of mails) {
        if (signal.aborted) return;
        this.#reportActive();
        await this.#takeAlone(mail, spare, cursorAt?.(mail.uid), signal);
      }
    });
  }

  /** Retries the mails that are due. Returns when the next one is due, epoch milliseconds. */
  async #retryDeferred({ uidValidity }: OpenMailbox, signal: AbortSignal): Promise<number> {
    const { clock } = this.#context.host;
    const waiting = await this.#deferred.list(uidValidity);
    await this.#withSpare(uidValidity, signal, async (spare) => {
      for (const mail of waiting) {
        if (signal.aborted || mail.dueAt > clock.now()) return;
        // New mail does not wait for a long list of mails at which the server fails.
        if (!(await this.#takeAlone(mail, spare, undefined, signal))) return;
      }
    });
    const [next] = waiting.length === 0 ? [] : await this.#deferred.list(uidValidity);
    return next?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  async #withSpare(
    uidValidity: string | undefined,
    signal: AbortSignal,
    work: (spare: Spare) => Promise<void>,
  ): Promise<void> {
    const { mailbox } = this.#context;
    let second: ImapConnection | undefined;
    const connect = async () => {
      second = await ImapConnection.connect(mailbox, signal);
      const opened = await second.open(mailbox.folder);
      if (opened.uidValidity === uidValidity) return second;
      throw serverFault(t`the mailbox was renumbered meanwhile`);
    };
    const close = async () => {
      const closing = second;
      second = undefined;
      await closing?.[Symbol.asyncDispose]();
    };
    const get = async () => {
      if (second !== undefined) return second;
      try {
        return await connect();
      } catch (error) {
        await close();
        if (this.#connection.isOpen) return this.#connection;
        throw error;
      }
    };
    await work({ get, close }).finally(close);
  }

  /** False if it could not be read and was deferred or given up. */
  async #takeAlone(
    mail: DeferredMail,
    spare: Spare,
    cursor: MailCursor | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { host, at } = this.#context;
    const deferred = this.#deferred;
    const connection = await spare.get();
    const isLast =
      mail.tries + 1 >= MAX_TRIES ||
      (mail.tries === 0 && (await deferred.isFull(mail.uidValidity)));
    let incoming: Incoming | 'unproven yet' | undefined;
    let failure: unknown;
    try {
      incoming = await this.#readAlone(connection, mail, isLast);
    } catch (error) {
      signal.throwIfAborted();
      host.log.warn('mail not read', { uid: mail.uid, tries: mail.tries + 1, error });
      await spare.close();
      failure = error;
      if (mail.tries + 1 === TOLD_TRIES || (isLast && mail.tries < TOLD_TRIES)) {
        host.alert(noticeOf(mail, error));
      }
    }
    const isOpen = failure !== undefined || incoming === 'unproven yet';
    if (isOpen && !isLast) await deferred.defer(mail);
    else if (failure !== undefined) incoming = unreadableMail(mail, host.clock.now(), at);
    await this.#handOver(incoming, cursor);
    if (!isOpen || isLast) await deferred.settle(mail);
    return failure === undefined;
  }

  async #readAlone(connection: ImapConnection, mail: DeferredMail, isLast: boolean) {
    const { uidValidity, uid, since, tries } = mail;
    const [summary] = await connection.summaries([uid]);
    if (summary === undefined) return undefined;
    if (since !== undefined && (await this.#isOld(summary, since))) return undefined;
    return this.#read(connection, { uidValidity, summary }, { tries, isLast });
  }

  async #handOver(
    incoming: Incoming | 'unproven yet' | undefined,
    cursor: MailCursor | undefined,
  ): Promise<void> {
    if (incoming === undefined || incoming === 'unproven yet') return this.#commit([], cursor);
    const { host } = this.#context;
    const { bounced, notice } = incoming;
    if (bounced !== undefined) await host.bounced(bounced.id, bounced.reason);
    await this.#commit([incoming], cursor);
    if (notice !== undefined) host.alert(notice);
    if (incoming.entry.kind === 'record') {
      const { message, gate } = incoming.entry;
      host.log.info('mail refused', { messageId: message.id, gate });
    }
  }

  /** Undefined if it was deleted. */
  async #read(
    connection: ImapConnection,
    { summary, uidValidity }: Listed,
    turn: Pick<MailArrival, 'tries' | 'isLast'>,
  ) {
    const receivedAt = this.#context.host.clock.now();
    await using mail = await fetchMail(connection, summary);
    if (mail === undefined) return undefined;
    const headers = parseHeaderBlock(splitHeader(mail.raw).block);
    const reading = await this.#parse(summary, mail.raw);
    const arrival = { uidValidity, summary, headers, reading, receivedAt, ...turn };
    return await readIncoming(arrival, this.#context);
  }

  async #parse(summary: MailSummary, raw: RawMail): Promise<MailReading> {
    if (summary.bytes <= MAX_MAIL_BYTES) return this.#context.reader.read(raw);
    return { result: { kind: 'unreadable', gate: 'mail too large' }, report: NO_SIGNATURES };
  }

  async #commit(incoming: readonly Incoming[], cursor: MailCursor | undefined): Promise<void> {
    const { host, at } = this.#context;
    const entries = incoming.map((one) => one.entry);
    if (cursor === undefined && entries.length === 0) return;
    const place = cursor && { cursor: { ...at, value: formatCursor(cursor) } };
    await host.receive(entries, place ?? {});
  }
}

/** Of a mail over the size limit, only the header is fetched. */
async function fetchMail(
  connection: ImapConnection,
  { uid, bytes }: MailSummary,
): Promise<SpooledMail | undefined> {
  if (bytes > MAX_MAIL_BYTES) return inMemory(await connection.header(uid, MAX_HEADER_BYTES));
  const mail = await spoolMail(connection.pieces(uid, bytes));
  return mail === undefined && bytes === 0 ? inMemory(Buffer.alloc(0)) : mail;
}

const newcomer = (
  { uidValidity }: Pick<OpenMailbox, 'uidValidity'>,
  uid: number,
  since?: number,
): DeferredMail => ({ uidValidity, uid, tries: 0, dueAt: 0, since });

function noticeOf({ uid }: DeferredMail, error: unknown): string {
  const why = shortened(error instanceof Error ? error.message : String(error), MAX_REASON_CHARS);
  return (
    t`A mail in the mailbox (UID ${uid}) cannot be read: ${verbatim(why)}. Other mail is answered as ` +
    t`usual. I retry this one for six hours. Open it in a mail program; if it is damaged there too, ` +
    t`ask the sender to send it again.`
  );
}
