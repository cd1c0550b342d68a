// One IMAP connection over imapflow: login and the few commands that the channel needs. Bodies are
// peeked and mailboxes opened read-only, unless a mail is to be moved, so no flag of the owner
// changes. Every command has a deadline; a missed one closes the connection, because the next
// response could belong to the previous command.

import { type FetchMessageObject, type FetchQueryObject, ImapFlow } from 'imapflow';
import { ChannelError } from '../../kernel/message/errors.ts';
import { inTime } from '../../lib/async.ts';
import { MAX_MAIL_BYTES } from '../../lib/mail/raw-mail.ts';
import { type Reach, reachThrough } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  AUTH_REFUSED,
  imapFailure,
  type MailAccount,
  type Secret,
  serverFault,
  tlsOptionsOf,
  tokenLoginMissing,
  withSecret,
} from './connection-settings.ts';
import { headOf, type MailHead, type MailSummary, summaryOf } from './mail-reader.ts';
import { MAX_MEMORY_BYTES } from './mail-spool.ts';

const BODY_DEADLINE_MS = 120_000;
const CONNECT_DEADLINE_MS = 60_000;
const LOGOUT_DEADLINE_MS = 2_000;

export type OpenMailbox = { readonly uidValidity: string; readonly uidNext: number };

type MailFolder = { readonly path: string; readonly specialUse: string | undefined };

/** The folder of an account that the channel reads. */
export type Mailbox = {
  readonly account: MailAccount;
  readonly folder: string;
  readonly clock: Clock;
};

/** Runs `work` over a connection of its own. @throws ChannelError */
export async function withConnection<T>(
  mailbox: Mailbox,
  signal: AbortSignal,
  work: (connection: ImapConnection) => Promise<T>,
): Promise<T> {
  const connection = await ImapConnection.connect(mailbox, signal);
  return work(connection).finally(() => connection[Symbol.asyncDispose]());
}

export class ImapConnection implements AsyncDisposable {
  readonly #client: ImapFlow;
  readonly #clock: Clock;
  /** One per waiting call: a shared promise would retain every response of the server. */
  readonly #waiting = new Set<(failure: ChannelError) => void>();
  #failure: ChannelError | undefined;
  #news = Promise.withResolvers<void>();
  #lastError: unknown;

  private constructor(client: ImapFlow, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
    client.on('error', (error: unknown) => {
      this.#lastError = error;
      client.close();
    });
    client.on('close', () => {
      const failure = imapFailure(t`connection closed`, this.#lastError ?? t`by the server`);
      this.#failure ??= failure;
      for (const reject of this.#waiting) reject(failure);
    });
    client.on('exists', () => this.#news.resolve());
  }

  /** The signal closes the connection at once. @throws ChannelError */
  static connect({ account, clock }: Mailbox, signal: AbortSignal): Promise<ImapConnection> {
    return withSecret(account.credential, isLoginRefused, (secret) =>
      ImapConnection.#logIn(account, secret, clock, signal),
    );
  }

  static async #logIn(
    account: MailAccount,
    secret: Secret,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<ImapConnection> {
    signal.throwIfAborted();
    const { host, port } = account.imap;
    const reach = await reachThrough(account.proxy ?? '', host, port).catch((error: unknown) => {
      throw imapFailure('connect', error);
    });
    const client = newImapClient(account, secret, reach);
    const connection = new ImapConnection(client, clock);
    const onAbort = () => client.close();
    signal.addEventListener('abort', onAbort, { once: true });
    client.once('close', () => {
      signal.removeEventListener('abort', onAbort);
      reach[Symbol.dispose]();
    });
    try {
      await connection.#within(CONNECT_DEADLINE_MS, 'log in', client.connect());
    } catch (error) {
      client.close();
      const wantsToken = 'accessToken' in secret && client.capabilities.size > 0;
      throw wantsToken && !takesTokens(client) ? tokenLoginMissing() : error;
    }
    return connection;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  get isGmail(): boolean {
    return this.#client.capabilities.has('X-GM-EXT-1');
  }

  async open(mailbox: string, readOnly = true): Promise<OpenMailbox> {
    const opened = await this.#command(
      'open mailbox',
      this.#client.mailboxOpen(mailbox, { readOnly }),
    );
    const uidValidity = String(opened.uidValidity);
    if (!/^\d+$/.test(uidValidity)) throw serverFault(t`the server gives no UIDVALIDITY`);
    if (opened.uidNext > 0) return { uidValidity, uidNext: opened.uidNext };
    const newest = (await this.search({ uid: '*' })).at(-1) ?? 0;
    return { uidValidity, uidNext: newest + 1 };
  }

  /** UIDs above `uid`, ascending. */
  async uidsAfter(uid: number): Promise<readonly number[]> {
    // `n:*` always includes the last mail, even if its UID is below n (RFC 3501 section 6.4.8).
    const found = await this.search({ uid: `${uid + 1}:*` });
    return found.filter((candidate) => candidate > uid);
  }

  /** Data available without reading the mails; omits those deleted meanwhile. */
  async summaries(uids: readonly number[]): Promise<readonly MailSummary[]> {
    const found = await this.#command(
      'list mails',
      this.#client.fetchAll(
        uids.join(','),
        { uid: true, size: true, internalDate: true, headers: ['message-id', 'date'] },
        { uid: true },
      ),
    );
    const summaries = found.flatMap((mail) => summaryOf(mail) ?? []);
    if (summaries.length < uids.length) await this.#expectGone(uids, summaries);
    return summaries.sort((a, b) => a.uid - b.uid);
  }

  /** Headers for display, in the order of their UIDs. */
  async heads(uids: readonly number[]): Promise<readonly MailHead[]> {
    const query = { uid: true, envelope: true, flags: true, internalDate: true };
    const fetching = this.#client.fetchAll(uids.join(','), query, { uid: true });
    const found = await this.#command('list mails', fetching);
    return found.map(headOf).sort((a, b) => a.uid - b.uid);
  }

  /**
   * The raw mail in pieces; none if it is empty or was deleted meanwhile; stops shortly after the
   * limit. `bytes`: its size as listed.
   */
  async *pieces(uid: number, bytes: number): AsyncGenerator<Buffer, void, void> {
    let isThere = false;
    for await (const piece of bodyPieces((query) => this.#body(uid, query))) {
      isThere = true;
      yield piece;
    }
    if (isThere || bytes === 0 || !(await this.search({ uid: String(uid) })).includes(uid)) return;
    throw serverFault(t`the server answered OK without the mail`);
  }

  /** The start of the header block, at most `maxBytes`. */
  async header(uid: number, maxBytes: number): Promise<Buffer> {
    const mail = await this.#body(uid, {
      bodyParts: [{ key: 'HEADER', start: 0, maxLength: maxBytes }],
    });
    if (mail?.headers === undefined) throw serverFault(t`the server left out a mail header`);
    return mail.headers;
  }

  /** Resolves when there may be new mail, after `ms`, or when woken. */
  async waitForMail(ms: number, wake: Promise<void>, signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const ended = AbortSignal.any([signal, timer.signal]);
    // Ends when the next command interrupts it; a failure shows as the connection closing.
    void this.#client.idle().catch(() => undefined);
    const elapsed = this.#clock.sleep(Math.min(ms, MAX_IDLE_MS), ended).catch(() => undefined);
    try {
      await this.#firstOf([this.#news.promise, elapsed, wake]);
    } finally {
      timer.abort();
      this.#news = Promise.withResolvers<void>();
    }
  }

  async folders(): Promise<readonly MailFolder[]> {
    const listed = await this.#command('list folders', this.#client.list());
    return listed.map(({ path, specialUse }) => ({ path, specialUse }));
  }

  /** Moves a mail out of the mailbox opened for writing; false if the server refuses. */
  async move(uid: number, folder: string): Promise<boolean> {
    const moving = this.#client.messageMove(String(uid), folder, { uid: true });
    return (await this.#command('move a mail', moving)) !== false;
  }

  async append(folder: string, raw: Buffer, dateMs: number): Promise<void> {
    const appending = this.#client.append(folder, raw, ['\\Seen'], new Date(dateMs));
    const stored = await this.#within(BODY_DEADLINE_MS, t`store a copy`, appending);
    if (stored === false) throw serverFault(t`the server did not store the copy`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const leaving = this.#client.logout().catch(() => undefined);
    await inTime(this.#clock, LOGOUT_DEADLINE_MS, leaving);
    this.#client.close();
  }

  /** UIDs, ascending. */
  async search(query: Parameters<ImapFlow['search']>[0]): Promise<readonly number[]> {
    const found = await this.#command('search', this.#client.search(query, { uid: true }));
    if (!Array.isArray(found)) throw serverFault(t`the server refused a search`);
    return [...found].sort((a, b) => a - b);
  }

  async #body(
    uid: number,
    query: Parameters<ImapFlow['fetchOne']>[1],
  ): Promise<FetchMessageObject | undefined> {
    const fetching = this.#client.fetchOne(String(uid), query, { uid: true });
    return (await this.#within(BODY_DEADLINE_MS, t`fetch a mail`, fetching)) || undefined;
  }

  async #expectGone(uids: readonly number[], found: readonly MailSummary[]): Promise<void> {
    const known = new Set(found.map((summary) => summary.uid));
    const missing = uids.filter((uid) => !known.has(uid));
    const still = await this.search({ uid: missing.join(',') });
    if (still.length > 0) throw serverFault(t`the server left out mails it has`);
  }

  #command<T>(doing: string, work: Promise<T>): Promise<T> {
    return this.#within(COMMAND_DEADLINE_MS, doing, work);
  }

  async #within<T>(ms: number, doing: string, work: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    using _deadline = this.#clock.timer(ms, () => {
      late.reject(serverFault(t`${doing}: no answer within ${ms / 1000} s`));
      this.#client.close();
    });
    try {
      return await this.#firstOf([work, late.promise]);
    } catch (error) {
      throw imapFailure(doing, error);
    }
  }

  /** Resolves with the first result; rejects with the failure of the connection. */
  async #firstOf<T>(works: readonly Promise<T>[]): Promise<T> {
    const closed = Promise.withResolvers<never>();
    if (this.#failure !== undefined) closed.reject(this.#failure);
    this.#waiting.add(closed.reject);
    try {
      return await Promise.race([...works, closed.promise]);
    } finally {
      this.#waiting.delete(closed.reject);
    }
  }
}

// Configures the IMAP library for one account.

const COMMAND_DEADLINE_MS = 30_000;
/** RFC 2177 allows 29 minutes; routers drop idle connections much sooner. */
const MAX_IDLE_MS = 5 * 60_000;
/** Longer than one IDLE; otherwise the library treats its silence as a dead connection. */
const SOCKET_SILENCE_MS = 7 * 60_000;
const MAX_LITERAL_BYTES = 32 * 1024 * 1024;
const MAX_RESPONSE_BYTES = 40 * 1024 * 1024;
const MAX_LINE_BYTES = 4 * 1024 * 1024;

function newImapClient(account: MailAccount, secret: Secret, reach: Reach): ImapFlow {
  return new ImapFlow({
    host: reach.host,
    port: reach.port,
    secure: account.imap.security === 'tls',
    doSTARTTLS: account.imap.security === 'starttls',
    auth: { user: account.username, ...secret },
    tls: tlsOptionsOf(account, reach),
    disableAutoIdle: true,
    disableCompression: true,
    logger: false,
    maxIdleTime: MAX_IDLE_MS,
    connectionTimeout: COMMAND_DEADLINE_MS,
    socketTimeout: SOCKET_SILENCE_MS,
    maxLiteralSize: MAX_LITERAL_BYTES,
    maxResponseSize: MAX_RESPONSE_BYTES,
    maxLineLength: MAX_LINE_BYTES,
  });
}

const isLoginRefused = (error: unknown) =>
  error instanceof ChannelError && error.code === AUTH_REFUSED;

/** Whether the server accepts a login by token. */
function takesTokens(client: ImapFlow): boolean {
  return ['AUTH=OAUTHBEARER', 'AUTH=XOAUTH2', 'AUTH=XOAUTH'].some((name) =>
    client.capabilities.has(name),
  );
}

// Fetches a mail piece by piece (RFC 3501 section 6.4.5, partial fetch), so that no mail is in
// memory as a whole and every piece has its own deadline.

type Ask = (query: FetchQueryObject) => Promise<FetchMessageObject | undefined>;

/** Most mails fit into one piece. */
const FIRST_PIECE_BYTES = MAX_MEMORY_BYTES;
const PIECE_BYTES = 512 * 1024;

/** Stops after the limit: a longer mail is too large, whatever size the server announced. */
async function* bodyPieces(ask: Ask): AsyncGenerator<Buffer, void, void> {
  const whole = sectionPieces(async (start, maxLength) => {
    const found = await ask({ size: true, source: { start, maxLength } });
    return { piece: found?.source, size: found?.size ?? Number.POSITIVE_INFINITY };
  });
  let bytes = 0;
  for await (const piece of whole) {
    bytes += piece.length;
    yield piece;
  }
  if (bytes > 0) return;
  // Some servers return OK without a body; asked for header and text separately, they return it.
  const { headers } = (await ask({ headers: true })) ?? {};
  if (headers === undefined) return;
  const body = sectionPieces(async (start, maxLength) => {
    const found = await ask({ bodyParts: [{ key: 'TEXT', start, maxLength }] });
    return { piece: found?.bodyParts?.get('text'), size: Number.POSITIVE_INFINITY };
  });
  for await (const piece of body) {
    if (bytes === 0) yield headers;
    bytes += piece.length;
    yield piece;
  }
}

type Section = (
  start: number,
  maxLength: number,
) => Promise<{ readonly piece: Buffer | undefined; readonly size: number }>;

async function* sectionPieces(ask: Section): AsyncGenerator<Buffer, void, void> {
  for (let start = 0; start <= MAX_MAIL_BYTES; ) {
    const wanted = start === 0 ? FIRST_PIECE_BYTES : PIECE_BYTES;
    const { piece, size } = await ask(start, wanted);
    if (piece === undefined && start > 0 && start < size) {
      throw serverFault(t`the server left out the end of a mail`);
    }
    if (piece === undefined || piece.length === 0) return;
    yield piece;
    // A shorter piece is the last; a longer one the whole mail, without partial fetch.
    if (piece.length !== wanted) return;
    start += wanted;
  }
}
