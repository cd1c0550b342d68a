// What a person who links an account sees while the phone has not confirmed: the QR code and, beside
// it, the 8 characters that can be typed on the phone instead.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Logger } from '../../lib/logger.ts';
import type { LiveEvents } from './live-connection.ts';
import type { LoginAttempt } from './login.ts';

/** `attempt` undefined: nobody links. */
export function pairingEvents(
  attempt: LoginAttempt | undefined,
  deps: { readonly log: Logger; socket(): WASocket },
): Pick<LiveEvents, 'onQr' | 'onPaired'> {
  let isOffered = false;
  return {
    onQr(qr, expiresAt) {
      if (attempt === undefined) return;
      attempt.show({ kind: 'show_qr', qr, expiresAt });
      if (!isOffered) offerCode(deps.socket(), attempt, deps.log);
      isOffered = true;
    },
    onPaired() {
      attempt?.confirmed();
      attempt?.show({ kind: 'progress', text: 'The phone has confirmed; logging in.' });
    },
  };
}

/** Asks for a code where the attempt names a number. Without one the QR code is still there. */
function offerCode(socket: WASocket, attempt: LoginAttempt, log: Logger): void {
  const { phoneNumber } = attempt;
  if (phoneNumber === undefined) return;
  const withoutCode = () =>
    attempt.show({
      kind: 'progress',
      text: `WhatsApp gives no code for +${phoneNumber}: check the number, or scan the QR code.`,
    });
  const answer = answerTo(socket);
  socket.requestPairingCode(phoneNumber).then(
    async (code) => {
      if (await answer) attempt.show({ kind: 'show_code', code, phoneNumber });
      else withoutCode();
    },
    (error) => {
      log.info('whatsapp pairing code not requested', { error });
      withoutCode();
    },
  );
}

/**
 * Whether WhatsApp takes the code, which the library makes up by itself and gives out before it is
 * answered. Nothing else is asked on a connection that waits for the phone but whether it lives.
 */
function answerTo({ ws }: WASocket): Promise<boolean> {
  return new Promise((resolve) => {
    ws.once('CB:iq,type:error', () => resolve(false));
    ws.once('CB:iq,type:result', () => resolve(true));
  });
}
