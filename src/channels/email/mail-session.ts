// One run of the channel: follows the mailbox under supervision, sends answers, and tests itself by
// a mail to itself. Loaded when the channel runs, because it imports all mail libraries.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import {
  type AccountRef,
  accountPath,
  DEFAULT_ACCOUNT,
  type MessageId,
} from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { supervise } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost, Inbox } from '../channel.ts';
import { TOKEN_REFUSED } from './access-tokens.ts';
import { Answers, receiptOf } from './answers.ts';
import { AUTH_REFUSED, type MailAccount, mailAccountOf } from './connection-settings.ts';
import { ImapConnection, type Mailbox, withConnection } from './imap-connection.ts';
import { archiveMail, createInbox, folderFor, serverFilesSentMail, wasSent } from './inbox.ts';
import { MailFiles } from './mail-files.ts';
import { byMessageId, type DnsLookup, MailReader } from './mail-reader.ts';
import { MailRegister } from './mail-register.ts';
import { MailboxWatch } from './mailbox-watch.ts';
import { ReplyLimits } from './reply-limits.ts';
import { domainOf } from './rules/address.ts';
import { OWN_MARK_HEADER } from './rules/machine-mail.ts';
import type { EmailConfig } from './settings.ts';
import { sendBySmtp } from './smtp.ts';

const RECONNECT_MIN_MS = 5_000;
const RECONNECT_MAX_MS = 5 * 60_000;
const STABLE_MS = 10 * 60_000;
const MAX_AUTH_FAILURES = 3;
/** A mail may take this long to appear in the Sent folder. */
const SENT_SETTLE_MS = 10 * 60_000;

export type SessionDeps = {
  readonly at: AccountRef;
  readonly config: EmailConfig;
  readonly host: ChannelHost;
  /** Addresses of every mailbox of this home, including this one; default: those of this one. */
  readonly ours?: () => readonly string[];
  /** The current allow list; default: that of the given configuration. */
  readonly allowFrom?: () => readonly string[];
  /** Resolves TXT records for sender verification; default: the machine's name servers. */
  readonly lookup?: DnsLookup;
  /** PEM of the authorities to trust instead of the system's. */
  readonly certificateAuthority?: string;
};

export class MailSession {
  readonly at: AccountRef;
  readonly config: EmailConfig;
  readonly host: ChannelHost;
  readonly account: MailAccount;
  readonly register: MailRegister;
  readonly limits: ReplyLimits;
  readonly mailbox: Mailbox;
  readonly reader: MailReader;
  readonly inbox: Inbox;
  /** Kept across connections. */
  readonly progress = { isInterrupted: false };
  readonly #deps: SessionDeps;
  readonly #answers: Answers;
  readonly #files: MailFiles;
  #wake = Promise.withResolvers<void>();
  #isGmail = false;
  /** Aborts, with the reason, when the refresh token gives no more access tokens. */
  readonly #withdrawn = new AbortController();

  private constructor(
    deps: SessionDeps,
    account: MailAccount,
    register: MailRegister,
    limits: ReplyLimits,
  ) {
    const { at, config, host, lookup } = deps;
    const { clock } = host;
    this.#deps = deps;
    this.at = at;
    this.config = config;
    this.host = host;
    this.account = account;
    this.register = register;
    this.limits = limits;
    this.mailbox = { account, folder: config.mailbox, clock };
    this.reader = new MailReader({ clock, lookup });
    this.inbox = createInbox(this.mailbox, lookup);
    this.#files = new MailFiles(this.mailbox, this.reader);
    this.#answers = new Answers(this);
  }

  /** @throws ChannelError `mail_settings` */
  static async open(deps: SessionDeps): Promise<MailSession> {
    const { host, config, at, certificateAuthority } = deps;
    const { clock, state } = host;
    const account = mailAccountOf(config, { clock, state, certificateAuthority });
    const register = await MailRegister.open(state);
    await register.expire(clock.now());
    const path = accountPath(at);
    const limits = await ReplyLimits.open({ host, register, limits: config.limits, path });
    return new MailSession(deps, account, register, limits);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#superviseMailbox(AbortSignal.any([signal, this.#withdrawn.signal]));
    } finally {
      await this.reader[Symbol.asyncDispose]();
      await this.#files[Symbol.asyncDispose]();
    }
    if (!signal.aborted) throw await this.#refused();
  }

  async #superviseMailbox(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.host;
    let authFailures = 0;
    await supervise((inner, works) => this.#follow(inner, works), {
      ...{ name: 'mailbox', signal, clock, log },
      minMs: RECONNECT_MIN_MS,
      maxMs: RECONNECT_MAX_MS,
      stableMs: STABLE_MS,
      onFailure: (error, waitMs) => {
        const code = error instanceof ChannelError ? error.code : '';
        const reason = error instanceof Error ? error.message : String(error);
        authFailures = code === AUTH_REFUSED ? authFailures + 1 : 0;
        if (code === TOKEN_REFUSED) this.tokenRefused(reason);
        if (code === TOKEN_REFUSED || authFailures >= MAX_AUTH_FAILURES) return 'stop';
        this.host.report({ kind: 'degraded', reason, retryAt: clock.now() + waitMs });
        return 'restart';
      },
    });
  }

  #follow(signal: AbortSignal, works: () => void): Promise<void> {
    return withConnection(this.mailbox, signal, (connection) => {
      this.#isGmail = connection.isGmail;
      return new MailboxWatch(this, connection, works).run(signal);
    });
  }

  /** The content of a file of a mail. @throws AttachmentError */
  file(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return this.#files.fetch(ref, signal);
  }

  archive(id: MessageId, signal: AbortSignal): Promise<void> {
    return archiveMail(this.mailbox, this.register, id, signal);
  }

  /**
   * Sends a mail to the own address by SMTP, waits for it by IMAP, then moves it to the trash. It
   * carries the mark of the program's own mails, so it is never read as a message or answered (RFC
   * 3834).
   * @throws DeliveryError, ChannelError
   */
  async *selfTest(nonce: string, signal: AbortSignal): AsyncGenerator<string, void, void> {
    const id = await sendToOurselves(
      this.mailbox,
      {
        ...{ name: `self-test.${nonce}`, subject: `nanobot self-test ${nonce}` },
        text: t`A test email of nanobot to itself. It is not answered.`,
      },
      signal,
    );
    yield 'sent';
    await using connection = await ImapConnection.connect(this.mailbox, signal);
    const uid = await arrivalOf(connection, this.mailbox, id, signal);
    yield 'arrived';
    const trash = await folderFor(connection, '\\Trash');
    if (trash === undefined || trash === this.mailbox.folder) return;
    await connection.open(this.mailbox.folder, false);
    if (await connection.move(uid, trash)) yield 'removed';
  }

  send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    return this.#answers.send(message, context);
  }

  async reconcile(
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<Receipt | 'absent' | undefined> {
    const record = await this.register.outgoing(message.id);
    if (record === undefined) return 'absent';
    if (record.isSent) return receiptOf(record);
    const found = await withConnection(this.mailbox, signal, (connection) =>
      wasSent(connection, record.messageId),
    );
    if (found === true) return receiptOf(record);
    return this.host.clock.now() - record.triedAt >= SENT_SETTLE_MS ? 'absent' : undefined;
  }

  keepsCopies(): boolean {
    return !this.#isGmail && !serverFilesSentMail(this.account.smtp.host);
  }

  wake(): void {
    this.#wake.resolve();
  }

  nextWake(): Promise<void> {
    this.#wake = Promise.withResolvers<void>();
    return this.#wake.promise;
  }

  tokenRefused(reason: string): void {
    this.#withdrawn.abort(reason);
  }

  /** Evaluated on each call: addresses of other mailboxes may change after the start. */
  ours(): readonly string[] {
    return [...this.account.own, ...(this.#deps.ours?.() ?? [])];
  }

  allowFrom(): readonly string[] {
    const listed = this.#deps.allowFrom?.() ?? this.config.allowFrom;
    return listed.map((address) => address.toLowerCase());
  }

  async #refused(): Promise<ChannelError> {
    const { host, at } = this;
    const { credential } = this.account;
    if (this.#withdrawn.signal.aborted && credential.kind === 'oauth2') {
      const reason = String(this.#withdrawn.signal.reason);
      const remedy = newLogin(at, this.config);
      host.report({ kind: 'stopped', reason, remedy });
      if (await credential.tokens.isNewlyRefused()) {
        host.alert(
          t`The mailbox ${this.account.from} is no longer read or answered: ${reason}. To go on, ${remedy}`,
        );
      }
      return new ChannelError(TOKEN_REFUSED, reason, { remedy: NEVER });
    }
    const reason = t`the IMAP server refused the login ${MAX_AUTH_FAILURES} times`;
    const isToken = credential.kind === 'oauth2';
    host.report({ kind: 'stopped', reason, remedy: isToken ? checkToken(at) : checkPassword(at) });
    return new ChannelError(AUTH_REFUSED, reason, { remedy: NEVER });
  }
}

const checkPassword = (at: AccountRef) =>
  t`check user name and app password of the mailbox (${accountPath(at)}), then restart the channel`;
const checkToken = (at: AccountRef) =>
  t`check that IMAP and SMTP are switched on for the mailbox and that ${accountPath(at)}.oauth2.scope covers both, then restart the channel`;

function newLogin({ account }: AccountRef, { oauth2 }: EmailConfig): string {
  const what =
    oauth2.refreshToken === '' ? t`log in again` : t`make a new refresh token and save it`;
  const which = account === DEFAULT_ACCOUNT ? '' : t` --account ${account}`;
  return t`${what}: nanobot channels login email${which}`;
}

const LOOK_MS = 2_000;

type SelfMail = {
  /** Identifies it in its Message-ID. */
  readonly name: string;
  readonly subject: string;
  readonly text: string;
};

/** Sends a mail of the mailbox to itself; returns its Message-ID. @throws DeliveryError */
export async function sendToOurselves(
  { account, clock }: Mailbox,
  { name, subject, text }: SelfMail,
  signal: AbortSignal,
): Promise<string> {
  const { from } = account;
  const messageId = `<${name}@${domainOf(from)}>`;
  const raw = [
    `From: <${from}>`,
    `To: <${from}>`,
    `Subject: ${subject}`,
    `Date: ${new Date(clock.now()).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${messageId}`,
    t`Auto-Submitted: auto-generated`,
    t`X-Auto-Response-Suppress: All`,
    `${OWN_MARK_HEADER}: ${name}`,
    'MIME-Version: 1.0',
    t`Content-Type: text/plain; charset=utf-8`,
    '',
    text,
    '',
  ].join('\r\n');
  await sendBySmtp(account, from, Buffer.from(raw), signal);
  return messageId;
}

/** Waits for its UID. @throws ChannelError, the signal's reason */
export async function arrivalOf(
  connection: ImapConnection,
  { folder }: Mailbox,
  messageId: string,
  signal: AbortSignal,
): Promise<number> {
  const never = new Promise<void>(() => undefined);
  await connection.open(folder);
  for (;;) {
    const [uid] = await connection.search(byMessageId(messageId));
    if (uid !== undefined) return uid;
    await connection.waitForMail(LOOK_MS, never, signal);
    signal.throwIfAborted();
  }
}
