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
  // The library does not look at the answer to its request.
  socket.ws.once('CB:iq,type:error', withoutCode);
  socket.requestPairingCode(phoneNumber).then(
    (code) => attempt.show({ kind: 'show_code', code, phoneNumber }),
    (error) => {
      log.info('whatsapp pairing code not requested', { error });
      withoutCode();
    },
  );
}
