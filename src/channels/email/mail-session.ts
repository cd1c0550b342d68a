// One run of the channel: follows the mailbox under supervision, sends answers, and tests itself by a mail to
// itself. Loaded when the channel runs, with all the mail libraries behind it.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { type AccountRef, accountPath } from '../../kernel/message/account.ts';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
} from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { supervise } from '../../lib/async.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ChannelHost, Inbox } from '../channel.ts';
import { Answers, receiptOf } from './answers.ts';
import {
  AUTH_REFUSED,
  type MailAccount,
  mailAccountOf,
  TOKEN_REFUSED,
} from './connection-settings.ts';
import { DeferredMails } from './cursor.ts';
import { ImapConnection } from './imap-connection.ts';
import { archiveMail, createInbox, folderOf, serverFilesSentMail, wasSent } from './inbox.ts';
import { MailFiles } from './mail-files.ts';
import { byMessageId, type DnsLookup, MailReader } from './mail-reader.ts';
import { MailRegister } from './mail-register.ts';
import { MailboxWatch } from './mailbox-watch.ts';
import { composeMail } from './outbound.ts';
import { ReplyLimits } from './reply-limits.ts';
import type { EmailConfig } from './settings.ts';
import { sendBySmtp } from './smtp.ts';

const RECONNECT_MIN_MS = 5_000;
const RECONNECT_MAX_MS = 5 * 60_000;
const STABLE_MS = 10 * 60_000;
const MAX_AUTH_FAILURES = 3;
/** A mail may still be on its way into the Sent folder this long. */
const SENT_SETTLE_MS = 10 * 60_000;

export type SessionDeps = {
  readonly at: AccountRef;
  readonly config: EmailConfig;
  readonly host: ChannelHost;
  readonly lookup?: DnsLookup;
  readonly certificateAuthority?: string;
  readonly allowFrom?: () => readonly string[];
  readonly ours?: () => readonly string[];
};

export class MailSession {
  readonly #deps: SessionDeps;
  readonly #account: MailAccount;
  readonly #register: MailRegister;
  readonly #answers: Answers;
  readonly limits: ReplyLimits;
  readonly #files: MailFiles;
  readonly #reader: MailReader;
  #wake = Promise.withResolvers<void>();
  #isGmail = false;
  readonly #progress = { isInterrupted: false };
  /** Aborts, with the reason, once no access token will ever come again. */
  readonly #withdrawn = new AbortController();

  private constructor(
    deps: SessionDeps,
    account: MailAccount,
    register: MailRegister,
    limits: ReplyLimits,
  ) {
    this.#deps = deps;
    this.limits = limits;
    this.#account = account;
    this.#register = register;
    const { config, host, lookup } = deps;
    const { clock } = host;
    this.#reader = new MailReader({ clock, ...(lookup === undefined ? {} : { lookup }) });
    const rest = () => this.#reader.rest();
    this.#files = new MailFiles({ account, mailbox: config.mailbox, clock, rest });
    this.#answers = new Answers({
      host: deps.host,
      path: accountPath(deps.at),
      account,
      register,
      limits,
      keepsCopies: () => !this.#isGmail && !serverFilesSentMail(account.smtp.host),
      wake: () => this.#wake.resolve(),
      replyAll: deps.config.replyAll,
      allowFrom: () => this.#allowFrom(),
      tokenRefused: (reason) => this.#withdrawn.abort(reason),
    });
  }

  /** @throws ChannelError `mail_settings` */
  static async open(deps: SessionDeps): Promise<MailSession> {
    const { clock, state } = deps.host;
    const { certificateAuthority } = deps;
    const account = mailAccountOf(deps.config, {
      clock,
      state,
      ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    });
    const register = await MailRegister.open(deps.host.state);
    await register.expire(deps.host.clock.now());
    const { host, config, at } = deps;
    const path = accountPath(at);
    const limits = await ReplyLimits.open({ host, register, limits: config.limits, path });
    return new MailSession(deps, account, register, limits);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#superviseMailbox(AbortSignal.any([signal, this.#withdrawn.signal]));
    } finally {
      await this.#reader[Symbol.asyncDispose]();
      await this.#files[Symbol.asyncDispose]();
    }
    if (!signal.aborted) throw this.#refused();
  }

  async #superviseMailbox(signal: AbortSignal): Promise<void> {
    const { host } = this.#deps;
    let authFailures = 0;
    await supervise((inner, works) => this.#follow(inner, works), {
      name: 'mailbox',
      signal,
      clock: host.clock,
      log: host.log,
      minMs: RECONNECT_MIN_MS,
      maxMs: RECONNECT_MAX_MS,
      stableMs: STABLE_MS,
      onFailure: (error, waitMs) => {
        const isAuth = error instanceof ChannelError && error.code === AUTH_REFUSED;
        authFailures = isAuth ? authFailures + 1 : 0;
        if (error instanceof ChannelError && error.code === TOKEN_REFUSED) {
          this.#withdrawn.abort(error.message);
          return 'stop';
        }
        if (authFailures >= MAX_AUTH_FAILURES) return 'stop';
        const reason = error instanceof Error ? error.message : String(error);
        host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + waitMs });
        return 'restart';
      },
    });
  }

  /** The content of a file that came with a mail. @throws AttachmentError */
  file(ref: string, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return this.#files.fetch(ref, signal);
  }

  archive(id: MessageId, signal: AbortSignal): Promise<void> {
    const { host, config } = this.#deps;
    const { mailbox } = config;
    const mine = { account: this.#account, register: this.#register, clock: host.clock, mailbox };
    return archiveMail(mine, id, signal);
  }

  get inbox(): Inbox {
    const { host, config, lookup } = this.#deps;
    const { mailbox } = config;
    const found = lookup === undefined ? {} : { lookup };
    return createInbox({ account: this.#account, mailbox, clock: host.clock, ...found });
  }

  selfTest(nonce: string, signal: AbortSignal): AsyncIterable<string> {
    const { clock } = this.#deps.host;
    const { mailbox } = this.#deps.config;
    return testMailbox({ account: this.#account, mailbox, clock }, nonce, signal);
  }

  send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    return this.#answers.send(message, context);
  }

  async reconcile(
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<Receipt | 'absent' | undefined> {
    const { clock } = this.#deps.host;
    const record = await this.#register.outgoing(message.id);
    if (record === undefined) return 'absent';
    if (record.isSent) return receiptOf(record);
    const connection = await ImapConnection.connect(this.#account, clock, signal);
    const found = await wasSent(connection, record.messageId).finally(() =>
      connection[Symbol.asyncDispose](),
    );
    if (found === true) return receiptOf(record);
    return clock.now() - record.triedAt >= SENT_SETTLE_MS ? 'absent' : undefined;
  }

  async #follow(signal: AbortSignal, works: () => void): Promise<void> {
    const { host, config, at } = this.#deps;
    const connection = await ImapConnection.connect(this.#account, host.clock, signal);
    this.#isGmail = connection.isGmail;
    const settings = {
      at,
      own: this.#account.own,
      ours: () => this.#ours(),
      allowFrom: () => this.#allowFrom(),
      replyAll: config.replyAll,
      quoteOriginal: config.quoteOriginal,
      authservId: config.authservId,
      mailbox: config.mailbox,
      pollMs: config.pollSecs * 1000,
      acceptUnverified: config.acceptUnverified,
      answers: host.answers.bind(host),
      isTrusted: host.isTrusted.bind(host),
    };
    const nextWake = () => {
      this.#wake = Promise.withResolvers<void>();
      return this.#wake.promise;
    };
    const deps = {
      ...{ host, settings, register: this.#register, reader: this.#reader, nextWake, works },
      deferred: new DeferredMails(host.state, host.clock),
      progress: this.#progress,
      connect: (inner: AbortSignal) => ImapConnection.connect(this.#account, host.clock, inner),
    };
    try {
      await new MailboxWatch(deps, connection).run(signal);
    } finally {
      await connection[Symbol.asyncDispose]();
    }
  }

  /** Another mailbox of ours may be called something this one was not told at its start. */
  #ours(): readonly string[] {
    return [...this.#account.own, ...(this.#deps.ours?.() ?? [])];
  }

  #allowFrom(): readonly string[] {
    const { allowFrom, config } = this.#deps;
    return (allowFrom?.() ?? config.allowFrom).map((address) => address.toLowerCase());
  }

  #refused(): ChannelError {
    const { host, at } = this.#deps;
    if (this.#withdrawn.signal.aborted) {
      const reason = String(this.#withdrawn.signal.reason);
      host.report({ kind: 'stopped', reason, remedy: newToken(at) });
      return new ChannelError(TOKEN_REFUSED, reason, { remedy: NEVER });
    }
    const reason = `the IMAP server refused the log-in ${MAX_AUTH_FAILURES} times`;
    const isToken = this.#account.credential.kind === 'oauth2';
    host.report({ kind: 'stopped', reason, remedy: isToken ? checkToken(at) : checkPassword(at) });
    return new ChannelError(AUTH_REFUSED, reason, { remedy: NEVER });
  }
}

const checkPassword = (at: AccountRef) =>
  `check user name and app password of the mailbox (${accountPath(at)}), then restart the channel`;
const checkToken = (at: AccountRef) =>
  `check that IMAP and SMTP are switched on for the mailbox and that ${accountPath(at)}.oauth2.scope covers both, then restart the channel`;
const newToken = ({ account }: AccountRef) =>
  `make a new refresh token and save it: nanobot channels login email${account === DEFAULT_ACCOUNT ? '' : ` --account ${account}`}`;

// A mail of ours to ourselves: out by SMTP, seen again by IMAP, then put into the trash. It carries the
// mark of our own mails, so it is read by nobody here and never answered (RFC 3834).

const LOOK_MS = 2000;

export type MailTestDeps = {
  readonly account: MailAccount;
  readonly mailbox: string;
  readonly clock: Clock;
};

/** @throws DeliveryError, ChannelError */
export async function* testMailbox(
  { account, mailbox, clock }: MailTestDeps,
  nonce: string,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const { from } = account;
  const id = `<self-test.${nonce}@${from.slice(from.lastIndexOf('@') + 1)}>`;
  await sendBySmtp(account, from, await testMail(from, id, nonce, clock.now()), signal);
  yield 'sent';
  const connection = await ImapConnection.connect(account, clock, signal);
  try {
    await connection.open(mailbox);
    const uid = await arrival(connection, id, signal);
    yield 'arrived';
    const trash = folderOf(await connection.folders(), ['\\Trash']);
    if (trash === undefined || trash === mailbox) return;
    await connection.open(mailbox, false);
    if (await connection.move(uid, trash)) yield 'removed';
  } finally {
    await connection[Symbol.asyncDispose]();
  }
}

async function arrival(
  connection: ImapConnection,
  id: string,
  signal: AbortSignal,
): Promise<number> {
  const never = new Promise<void>(() => undefined);
  for (;;) {
    const [uid] = await connection.search(byMessageId(id));
    if (uid !== undefined) return uid;
    await connection.waitForMail(LOOK_MS, never, signal);
    signal.throwIfAborted();
  }
}

function testMail(from: string, mailId: string, nonce: string, now: number): Promise<Buffer> {
  const markdown = 'A mail of nanobot to itself, to test the way out and in. Nothing answers it.';
  const message: OutboundMessage = {
    id: messageId(`self-test/${nonce}`),
    chat: { channel: channelName('email'), account: DEFAULT_ACCOUNT, chat: chatId(from) },
    markdown,
  };
  return composeMail({
    ...{ message, packed: { markdown, files: [] }, thread: nonce, recipient: from, from },
    quote: undefined,
    record: {
      messageId: mailId,
      dateMs: now,
      subject: `nanobot self-test ${nonce}`,
      references: [],
      triedAt: now,
      isSent: false,
    },
  });
}
