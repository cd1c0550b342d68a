// Proves a mailbox before it is saved: IMAP opens it, SMTP takes a log-in, and one mail to itself
// arrives, so both ways are known to work. The mail libraries are loaded when it is called.

import { randomUUID } from 'node:crypto';
import { ChannelError, DeliveryError } from '../../kernel/message/errors.ts';
import { type Clock, systemClock } from '../../lib/time/clock.ts';
import {
  AUTH_REFUSED,
  type MailAccount,
  mailAccountOf,
  TOKEN_REFUSED,
} from './connection-settings.ts';
import type { ImapConnection } from './imap-connection.ts';
import { byMessageId } from './mail-reader.ts';
import { OWN_MARK_HEADER } from './rules/machine-mail.ts';
import type { EmailConfig } from './settings.ts';
import { usesOAuth2 } from './settings.ts';
import type { sendBySmtp } from './smtp.ts';

/** How long the mail to itself may take. */
const ARRIVAL_LIMIT_MS = 60_000;
const ARRIVAL_POLL_MS = 2_000;

export type MailProofStep = 'imap' | 'smtp' | 'round trip';

export type MailProof =
  | { readonly kind: 'proven' }
  | {
      readonly kind: 'failed';
      readonly step: MailProofStep;
      readonly problem: string;
      readonly remedy: string;
    };

export type ProveOptions = {
  /** Told when a step begins. */
  readonly onStep?: (step: MailProofStep) => void;
  readonly clock?: Clock;
  readonly certificateAuthority?: string;
};

const REMEDIES: Readonly<Record<MailProofStep, string>> = {
  imap: 'Check host, port and security of IMAP.',
  smtp: 'Check host, port and security of SMTP.',
  'round trip': 'The mail was sent but did not arrive in the inbox; look into the spam folder.',
};
const PASSWORD_REMEDY = 'Check user name and password; many providers ask for an app password.';
const TOKEN_REMEDY =
  'Check the user name, that IMAP and SMTP are switched on for the mailbox, and that the scope covers both.';
const GRANT_REMEDY =
  'Make a new refresh token; check client id, client secret, token address and scope.';

/** Never rejects for what the mail servers do; rejects only when the signal aborts. */
export async function proveMailbox(
  config: EmailConfig,
  signal: AbortSignal,
  options: ProveOptions = {},
): Promise<MailProof> {
  const { clock = systemClock } = options;
  let step: MailProofStep = 'imap';
  const begin = (next: MailProofStep) => {
    signal.throwIfAborted();
    step = next;
    options.onStep?.(next);
  };
  try {
    begin('imap');
    const [{ ImapConnection }, { proveSmtp, sendBySmtp }] = await Promise.all([
      import('./imap-connection.ts'),
      import('./smtp.ts'),
    ]);
    const { certificateAuthority } = options;
    const trust = certificateAuthority === undefined ? {} : { certificateAuthority };
    const account = mailAccountOf(config, { clock, ...trust });
    const connection = await ImapConnection.connect(account, clock, signal);
    try {
      await connection.open(config.mailbox);
      begin('smtp');
      await proveSmtp(account, signal);
      begin('round trip');
      await roundTrip({ account, connection, mailbox: config.mailbox, clock, signal, sendBySmtp });
    } finally {
      await connection[Symbol.asyncDispose]();
    }
    return { kind: 'proven' };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ChannelError || error instanceof DeliveryError)) throw error;
    return { kind: 'failed', step, problem: error.message, remedy: remedyFor(error, step, config) };
  }
}

function remedyFor(
  { code }: ChannelError | DeliveryError,
  step: MailProofStep,
  { oauth2 }: EmailConfig,
): string {
  if (code === TOKEN_REFUSED) return GRANT_REMEDY;
  if (code !== AUTH_REFUSED) return REMEDIES[step];
  return usesOAuth2(oauth2) ? TOKEN_REMEDY : PASSWORD_REMEDY;
}

type RoundTrip = {
  readonly account: MailAccount;
  readonly connection: ImapConnection;
  readonly mailbox: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly sendBySmtp: typeof sendBySmtp;
};

async function roundTrip(trip: RoundTrip): Promise<void> {
  const { account, connection, mailbox, clock, signal } = trip;
  const { from } = account;
  const messageId = `<proof.${randomUUID()}@${from.slice(from.lastIndexOf('@') + 1)}>`;
  await trip.sendBySmtp(account, from, Buffer.from(testMail(from, messageId, clock.now())), signal);
  const deadline = clock.monotonic() + ARRIVAL_LIMIT_MS;
  while (clock.monotonic() < deadline) {
    await connection.open(mailbox);
    if ((await connection.search(byMessageId(messageId))).length > 0) return;
    await clock.sleep(ARRIVAL_POLL_MS, signal);
  }
  throw new ChannelError('mail_round_trip', 'the mail to itself did not arrive within 60 s', {
    remedy: { kind: 'never' },
  });
}

function testMail(from: string, messageId: string, now: number): string {
  return [
    `From: <${from}>`,
    `To: <${from}>`,
    'Subject: nanobot set-up test',
    `Date: ${new Date(now).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: ${messageId}`,
    'Auto-Submitted: auto-generated',
    'X-Auto-Response-Suppress: All',
    `${OWN_MARK_HEADER}: proof`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'This mail proves that nanobot can send to and read from this mailbox. You may delete it.',
    '',
  ].join('\r\n');
}
