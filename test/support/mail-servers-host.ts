// What the email tests need around the channel: people with mail programs and a signing key, a name
// service that knows it, and the channel started against the servers.

import { generateKeyPairSync } from 'node:crypto';
import { ImapFlow } from 'imapflow';
import nodemailer from 'nodemailer';
import type { Channel } from '../../src/channels/channel.ts';
import { createEmailChannel, type EmailDeps } from '../../src/channels/email/email.ts';
import type { EmailConfig } from '../../src/channels/email/settings.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  threadId,
} from '../../src/kernel/message/ids.ts';
import type { InboundMessage, OutboundMessage } from '../../src/kernel/message/message.ts';
import { type Clock, systemClock } from '../../src/lib/time/clock.ts';
import type { MailServers } from './mail-servers.ts';
import { AGENT } from './mailbox-config.ts';
import type { MemoryHost } from './memory-host.ts';

const SIGNED_DOMAIN = 'person.test';
const WAIT_MS = 45_000;
const MAX_HASTY_WAIT_MS = 200;

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

/** Real time with short waits, for tests of what happens after a pause. */
export const hastyClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(Math.min(ms, MAX_HASTY_WAIT_MS), signal),
};

type LeapingClock = Clock & {
  /** Moves the time on. */
  leap(ms: number): void;
  /** No wait ends before this has come. */
  hold(event: Promise<unknown>): void;
};

/** The same, for waits that end when the test says so. */
export function createLeapingClock(): LeapingClock {
  let ahead = 0;
  let held: Promise<unknown> = Promise.resolve();
  return {
    ...hastyClock,
    now: () => systemClock.now() + ahead,
    async sleep(ms, signal) {
      await hastyClock.sleep(ms, signal);
      await held;
    },
    hold(event) {
      held = event;
    },
    leap(ms) {
      ahead += ms;
    },
  };
}

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

export type RunningChannel = {
  readonly channel: Channel;
  stop(): Promise<void>;
  /** Settles as `run` does. */
  readonly ended: Promise<void>;
};

/** Starts the channel and waits until it follows the mailbox. */
export async function startChannel(
  host: MemoryHost,
  config: EmailConfig,
  deps: EmailDeps,
): Promise<RunningChannel> {
  const running = launchChannel(host, config, deps);
  const before = host.statuses.length;
  await host.until(
    () => host.statuses.slice(before).some(({ kind }) => kind === 'running'),
    WAIT_MS,
  );
  return running;
}

export function launchChannel(
  host: MemoryHost,
  config: EmailConfig,
  deps: EmailDeps,
): RunningChannel {
  const channel = createEmailChannel(config, deps);
  const controller = new AbortController();
  const ended = channel.run(host, controller.signal);
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

/** An answer to a mail, as the bus would hand it over. */
export function answerTo(message: InboundMessage, markdown: string, n = 0): OutboundMessage {
  return {
    id: messageId(`turn-${message.id}/${n}`),
    chat: message.chat,
    markdown,
    replyTo: message.id,
  };
}

/** The first queued message, which the test knows to be there. */
export function firstOf(host: MemoryHost): InboundMessage {
  const [first] = queued(host);
  if (first === undefined) throw new Error('nothing was queued');
  return first;
}

export const queued = (host: MemoryHost): readonly InboundMessage[] =>
  host.entries.flatMap((entry) => (entry.kind === 'queue' ? [entry.message] : []));

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
  /** Default: the agent alone. */
  readonly to?: string;
  readonly cc?: string;
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
  /** Default: the agent alone. */
  readonly envelopeTo?: readonly string[];
  readonly attachments?: readonly {
    readonly filename: string;
    readonly content: Buffer;
    /** Stands in the HTML as `cid:`. */
    readonly cid?: string;
  }[];
};

/** Sends as a person's mail program would, through the real server. */
export async function sendAsPerson(servers: MailServers, mail: PersonMail): Promise<void> {
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: servers.smtpPort,
    ignoreTLS: true,
  });
  const {
    isSigned = true,
    envelopeFrom,
    envelopeTo = [AGENT],
    headers,
    raw,
    attachments = [],
    ...fields
  } = mail;
  await transport.sendMail({
    to: AGENT,
    ...fields,
    attachments: [...attachments],
    envelope: { from: envelopeFrom ?? mail.from, to: [...envelopeTo] },
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

/** Raw mails of a folder, oldest first, once everything sent has arrived. */
export async function mailsIn(
  servers: MailServers,
  address: string,
  folder = 'INBOX',
): Promise<readonly string[]> {
  await servers.settle();
  return withMailbox(servers, address, folder, async (client) => {
    if (client.mailbox === false || client.mailbox.exists === 0) return [];
    const found = await client.fetchAll('1:*', { source: true });
    return found.map((mail) => mail.source?.toString('utf8') ?? '');
  });
}
