// Submits one mail to the SMTP server. The dialogue is driven step by step, because the meaning of
// a lost connection depends on its progress: after the final dot the outcome is unknown (RFC 1047).

import { Readable } from 'node:stream';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { after, BACKOFF, ChannelError, DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import { fieldsOf } from '../../lib/json/json.ts';
import { type Reach, reachThrough } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import { TOKEN_REFUSED } from './access-tokens.ts';
import { type MailAccount, type Secret, tlsOptionsOf, withSecret } from './connection-settings.ts';

const CONNECT_TIMEOUT_MS = 30_000;
/** RFC 5321 section 4.5.3.2.6 grants the server ten minutes after the final dot. */
const SILENCE_TIMEOUT_MS = 10 * 60_000;
/** Pause after a temporary refusal, growing to the 30 min of RFC 5321 section 4.5.4.1. */
const MIN_BUSY_PAUSE_MS = 60_000;
const MAX_BUSY_PAUSE_MS = 30 * 60_000;
const MAX_DOUBLINGS = 10;

export const SMTP_AUTH_REFUSED = 'mail_auth_refused';

/** `attempt` is 1 on the first try. @throws DeliveryError */
export async function sendBySmtp(
  account: MailAccount,
  recipient: string,
  raw: Buffer,
  signal: AbortSignal,
  attempt = 1,
): Promise<void> {
  await inDialogue(account, signal, attempt, (dialogue) =>
    dialogue.send(account.from, recipient, raw),
  );
}

/** Tests host, encryption and password or token without sending. @throws DeliveryError */
export async function proveSmtp(account: MailAccount, signal: AbortSignal): Promise<void> {
  await inDialogue(account, signal, 1, async () => undefined);
}

async function inDialogue(
  account: MailAccount,
  signal: AbortSignal,
  attempt: number,
  talk: (dialogue: Dialogue) => Promise<void>,
): Promise<void> {
  await withSecret(account.credential, isLoginRefused, async (secret) => {
    const { host, port } = account.smtp;
    using reach = await reachThrough(account.proxy ?? '', host, port).catch((error: unknown) => {
      throw smtpFailure(error, false, attempt);
    });
    const dialogue = new Dialogue(account, reach, signal);
    try {
      await dialogue.logIn(account.username, secret);
      await talk(dialogue);
    } catch (error) {
      throw smtpFailure(error, dialogue.isHandedOver, attempt);
    } finally {
      dialogue.end();
    }
  }).catch((error: unknown) => {
    throw error instanceof ChannelError ? tokenFailure(error) : error;
  });
}

const isLoginRefused = (error: unknown) =>
  error instanceof DeliveryError && error.code === SMTP_AUTH_REFUSED;

class Dialogue {
  readonly #connection: SMTPConnection;
  readonly #failed = Promise.withResolvers<never>();
  readonly #onAbort: () => void;
  readonly #signal: AbortSignal;
  /** The whole mail was transmitted; only the server's answer can be missing. */
  isHandedOver = false;

  constructor(account: MailAccount, reach: Reach, signal: AbortSignal) {
    const { security } = account.smtp;
    this.#connection = new SMTPConnection({
      host: reach.host,
      port: reach.port,
      secure: security === 'tls',
      requireTLS: security === 'starttls',
      ignoreTLS: security === 'none',
      tls: tlsOptionsOf(account, reach),
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_TIMEOUT_MS,
      allowInternalNetworkInterfaces: true,
      customAuth: TOKEN_LOGIN,
    });
    this.#failed.promise.catch(() => undefined);
    this.#connection.on('error', (error: unknown) => this.#failed.reject(error));
    this.#connection.on('end', () => this.#failed.reject(new Error('connection closed')));
    this.#signal = signal;
    this.#onAbort = () => this.#failed.reject(signal.reason);
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  async logIn(user: string, secret: Secret): Promise<void> {
    this.#signal.throwIfAborted();
    await this.#step((done) => this.#connection.connect(done));
    if ('pass' in secret && secret.pass === '') return;
    const auth =
      'pass' in secret
        ? { user, pass: secret.pass }
        : { method: BY_TOKEN, credentials: { user, pass: secret.accessToken } };
    await this.#step((done) => this.#connection.login(auth, done));
  }

  async send(from: string, recipient: string, raw: Buffer): Promise<void> {
    const body = Readable.from([raw], { objectMode: false });
    body.once('end', () => {
      this.isHandedOver = true;
    });
    const envelope = { from, to: [recipient], size: raw.length };
    await this.#step((done) => this.#connection.send(envelope, body, done));
  }

  end(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#connection.on('error', () => undefined);
    if (this.#signal.aborted || this.isHandedOver === false) this.#connection.close();
    else this.#connection.quit();
  }

  async #step(start: (done: (error?: Error | null) => void) => void): Promise<void> {
    const step = Promise.withResolvers<void>();
    start((error) => (error ? step.reject(error) : step.resolve()));
    await Promise.race([step.promise, this.#failed.promise]);
  }
}

/** Without a token nothing was sent: the answer waits, also while the channel stops. */
function tokenFailure(error: ChannelError): DeliveryError {
  const code = error.code === TOKEN_REFUSED ? TOKEN_REFUSED : 'mail_not_sent';
  const options = { certainty: 'not_sent', remedy: BACKOFF, code, cause: error } as const;
  return new DeliveryError(error.message, options);
}

function smtpFailure(error: unknown, isHandedOver: boolean, attempt: number): DeliveryError {
  const { code, responseCode } = fieldsOf(error) ?? {};
  const detail = error instanceof Error ? error.message : String(error);
  const fail = (
    certainty: 'not_sent' | 'unknown',
    remedy: DeliveryError['remedy'],
    name = 'mail_not_sent',
  ) => new DeliveryError(detail, { certainty, remedy, code: name, cause: error });
  if (code === 'EAUTH') return fail('not_sent', BACKOFF, SMTP_AUTH_REFUSED);
  if (typeof responseCode !== 'number') return fail(isHandedOver ? 'unknown' : 'not_sent', BACKOFF);
  // An answer after the final dot is definite: the server has refused the mail.
  if (responseCode >= 500) return fail('not_sent', NEVER, 'mail_refused');
  const pauseMs = MIN_BUSY_PAUSE_MS * 2 ** Math.min(attempt - 1, MAX_DOUBLINGS);
  return fail('not_sent', after(Math.min(MAX_BUSY_PAUSE_MS, pauseMs)));
}

type Handler = SMTPConnection.CustomAuthenticationHandlers[string];

/**
 * Not the mechanism's own name: under that one the library falls back to sending the token as a
 * password if the server offers PLAIN.
 */
const BY_TOKEN = 'ACCESS-TOKEN';
const CONTINUE = 334;
const ACCEPTED = 235;

/** For the library's `customAuth` option. */
const TOKEN_LOGIN: SMTPConnection.CustomAuthenticationHandlers = {
  [BY_TOKEN]: (async (context) => {
    if (!context.authMethods.includes('XOAUTH2')) {
      throw new Error('the SMTP server does not support login with OAuth2 (XOAUTH2)');
    }
    const { user, pass } = context.auth.credentials;
    const payload = Buffer.from(t`user=${user}\u0001auth=Bearer ${pass}\u0001\u0001`);
    const first = await context.sendCommand(`AUTH XOAUTH2 ${payload.toString('base64')}`);
    // The details of the refusal; the server refuses once they are acknowledged.
    const last = first.status === CONTINUE ? await context.sendCommand('') : first;
    if (last.status !== ACCEPTED) throw new Error('the SMTP server refused the access token');
    return true;
  }) satisfies Handler,
};
