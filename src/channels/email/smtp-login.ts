// The log-in of an SMTP dialogue: the password, or an access token by XOAUTH2, fetched anew once when
// the server refuses it.

import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { MailCredential } from './settings.ts';

type Handler = SMTPConnection.CustomAuthenticationHandlers[string];

/**
 * Not the mechanism's own name: under that one the library falls back to sending the token as a
 * password where the server offers PLAIN too.
 */
const BY_TOKEN = 'ACCESS-TOKEN';
const CONTINUE = 334;
const ACCEPTED = 235;

/** For the library's `customAuth` option. */
export const TOKEN_LOGIN: SMTPConnection.CustomAuthenticationHandlers = {
  [BY_TOKEN]: (async (context) => {
    if (!context.authMethods.includes('XOAUTH2')) {
      throw new Error('the SMTP server takes no log-in by OAuth2 (XOAUTH2)');
    }
    const { user, pass } = context.auth.credentials;
    const payload = Buffer.from(`user=${user}\u0001auth=Bearer ${pass}\u0001\u0001`);
    const first = await context.sendCommand(`AUTH XOAUTH2 ${payload.toString('base64')}`);
    // The refusal's details; the server says no once they are acknowledged.
    const last = first.status === CONTINUE ? await context.sendCommand('') : first;
    if (last.status !== ACCEPTED) throw new Error('the SMTP server refused the access token');
    return true;
  }) satisfies Handler,
};

export function tokenAuth(user: string, accessToken: string) {
  return { method: BY_TOKEN, credentials: { user, pass: accessToken } };
}

export async function withSmtpSecret<T>(
  credential: MailCredential,
  isRefusal: (error: unknown) => boolean,
  talk: (accessToken: string | undefined) => Promise<T>,
): Promise<T> {
  if (credential.kind === 'password') return talk(undefined);
  const accessToken = await credential.tokens.current();
  try {
    return await talk(accessToken);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    credential.tokens.discard(accessToken);
    return talk(await credential.tokens.current());
  }
}
