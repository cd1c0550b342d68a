// The 8 characters a person can type on the phone instead of scanning the QR code.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Logger } from '../../lib/logger.ts';
import type { LoginAttempt } from './login.ts';

/** Asks for a code where the attempt names a number. Without one the QR code is still there. */
export function offerCode(socket: WASocket, attempt: LoginAttempt, log: Logger): void {
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
