// What the email tests need around the channel: a gateway that keeps what it is handed, a state that
// outlives restarts, people with mail programs and a signing key, and a name service that knows it.

import { generateKeyPairSync } from 'node:crypto';
import { ImapFlow } from 'imapflow';
import nodemailer from 'nodemailer';
import type { InboundEntry, SendContext } from '../../src/bus/bus.ts';
import type { Channel, ChannelHost, ChannelStatus } from '../../src/channels/channel.ts';
import { createEmailChannel, type EmailDeps } from '../../src/channels/email/email.ts';
import { configSchema, type EmailConfig } from '../../src/core/config.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, messageId, threadId } from '../../src/core/ids.ts';
import type { InboundMessage, OutboundMessage } from '../../src/core/message.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openEmbeddedStore } from '../../src/store/embedded.ts';
import type { EmbeddedStore } from '../../src/store/store.ts';
import type { MailServers } from './mail-servers.ts';

export const AGENT = 'agent@nanobot.test';
const SIGNED_DOMAIN = 'person.test';
const WAIT_MS = 15_000;

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

export const signingKey = {
  domainName: SIGNED_DOMAIN,
  keySelector: 'k1',
  privateKey: keys.privateKey,
};

/** Knows the key of person.test and nothing else. */
export const testLookup: NonNullable<EmailDeps['lookup']> = async (domain) => {
  if (domain === `k1._domainkey.${SIGNED_DOMAIN}`) {
    return [[`v=DKIM1; k=rsa; p=${keys.publicKey.toString('base64')}`]];
  }
  throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
};

export function emailConfig(servers: MailServers, changes: Partial<EmailConfig> = {}): EmailConfig {
  const defaults = configSchema.parse({}).channels.email;
  return {
    ...defaults,
    enabled: true,
    imapHost: 'localhost',
    imapPort: servers.imapsPort,
    smtpHost: 'localhost',
    smtpPort: servers.smtpsPort,
    username: AGENT,
    password: servers.password,
    allowFrom: ['*'],
    pollSecs: 60,
    ...changes,
  };
}

/** The gateway's side of the channel, kept over restarts. */
export class MailHost {
  readonly entries: InboundEntry[] = [];
  readonly statuses: ChannelStatus[] = [];
  readonly alerts: string[] = [];
  readonly #store: EmbeddedStore;
  readonly #waiting = new Set<() => void>();
  readonly #clock: Clock;
  cursor: string | undefined;

  private constructor(store: EmbeddedStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  static async open(clock: Clock = systemClock): Promise<MailHost> {
    const store = await openEmbeddedStore({ path: ':memory:', clock, log: silentLogger });
    return new MailHost(store, clock);
  }

  get queued(): readonly InboundMessage[] {
    return this.entries.flatMap((entry) => (entry.kind === 'queue' ? [entry.message] : []));
  }

  get gates(): readonly string[] {
    return this.entries.flatMap((entry) => (entry.kind === 'record' ? [entry.gate] : []));
  }

  contract(): ChannelHost {
    return {
      receive: async (batch, options) => {
        this.entries.push(...batch);
        if (options?.cursor !== undefined) this.cursor = options.cursor.value;
        this.#changed();
      },
      cursor: async () => this.cursor,
      report: (status) => {
        this.statuses.push(status);
        this.#changed();
      },
      alert: (text) => void this.alerts.push(text),
      state: this.#store.scope('email'),
      clock: this.#clock,
      log: silentLogger,
    };
  }

  /** Resolves once the condition holds; looked at whenever the channel did something. */
  async until(condition: () => boolean): Promise<void> {
    const late = AbortSignal.timeout(WAIT_MS);
    while (!condition()) {
      const step = Promise.withResolvers<void>();
      this.#waiting.add(step.resolve);
      const onLate = () => step.reject(new Error(`not reached: ${this.#describe()}`));
      late.addEventListener('abort', onLate, { once: true });
      await step.promise;
      late.removeEventListener('abort', onLate);
    }
  }

  async close(): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  #describe(): string {
    return JSON.stringify({ statuses: this.statuses.slice(-3), gates: this.gates });
  }

  #changed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

export type RunningChannel = {
  readonly channel: Channel;
  stop(): Promise<void>;
  /** Settles as `run` does. */
  readonly ended: Promise<void>;
};

/** Starts the channel and waits until it follows the mailbox. */
export async function startChannel(
  host: MailHost,
  config: EmailConfig,
  deps: EmailDeps,
): Promise<RunningChannel> {
  const running = launchChannel(host, config, deps);
  const before = host.statuses.length;
  await host.until(() => host.statuses.slice(before).some((status) => status.kind === 'running'));
  return running;
}

export function launchChannel(
  host: MailHost,
  config: EmailConfig,
  deps: EmailDeps,
): RunningChannel {
  const channel = createEmailChannel(config, deps);
  const controller = new AbortController();
  const ended = channel.run(host.contract(), controller.signal);
  ended.catch(() => undefined);
  return {
    channel,
    ended,
    async stop() {
      controller.abort();
      await ended;
    },
  };
}

export const sendContext: SendContext = {
  signal: AbortSignal.timeout(600_000),
  attempt: 1,
  sentParts: [],
  repeatsUnknown: false,
  partSent: async () => undefined,
};

/** An answer to a mail, as the bus would hand it over. */
export function answerTo(message: InboundMessage, markdown: string, n = 0): OutboundMessage {
  return {
    id: messageId(`turn-${message.id}/${n}`),
    chat: message.chat,
    markdown,
    replyTo: message.id,
  };
}

export function looseMessage(to: string, thread: string, markdown: string): OutboundMessage {
  const chat = { channel: channelName('email'), account: DEFAULT_ACCOUNT, chat: chatId(to) };
  return {
    id: messageId(`turn-${thread}/0`),
    chat: { ...chat, thread: threadId(thread) },
    markdown,
  };
}

export type PersonMail = {
  readonly from: string;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly messageId?: string;
  readonly inReplyTo?: string;
  readonly references?: string;
  readonly isSigned?: boolean;
  readonly raw?: string;
  readonly envelopeFrom?: string;
};

/** Sends as a person's mail program would, through the real server. */
export async function sendAsPerson(servers: MailServers, mail: PersonMail): Promise<void> {
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: servers.smtpPort,
    ignoreTLS: true,
  });
  const { isSigned = true, envelopeFrom, headers, raw, ...fields } = mail;
  await transport.sendMail({
    ...fields,
    to: AGENT,
    envelope: { from: envelopeFrom ?? mail.from, to: AGENT },
    ...(raw === undefined ? {} : { raw }),
    ...(headers === undefined ? {} : { headers: { ...headers } }),
    ...(isSigned ? { dkim: signingKey } : {}),
  });
  transport.close();
}

/** Opens a mailbox as its owner does. */
export async function withMailbox<T>(
  servers: MailServers,
  address: string,
  folder: string,
  use: (client: ImapFlow) => Promise<T>,
): Promise<T> {
  const client = new ImapFlow({
    host: '127.0.0.1',
    port: servers.imapPort,
    secure: false,
    doSTARTTLS: false,
    auth: { user: address, pass: servers.password },
    logger: false,
    disableAutoIdle: true,
  });
  await client.connect();
  await client.mailboxOpen(folder);
  const result = await use(client);
  await client.logout();
  return result;
}

/** Raw mails of a folder, oldest first, once there are `count`. */
export async function mailsIn(
  servers: MailServers,
  address: string,
  count: number,
  folder = 'INBOX',
): Promise<readonly string[]> {
  return withMailbox(servers, address, folder, async (client) => {
    const late = AbortSignal.timeout(WAIT_MS);
    for (;;) {
      const found = await client.fetchAll('1:*', { source: true }).catch(() => []);
      if (found.length >= count) return found.map((mail) => mail.source?.toString('utf8') ?? '');
      late.throwIfAborted();
      const news = new Promise((resolve) => client.once('exists', resolve));
      await Promise.race([news, systemClock.sleep(200)]);
      await client.noop();
    }
  });
}
