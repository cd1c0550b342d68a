// Makes Baileys trust a test server's certificate root. As a preload (`node --import`) it takes the
// root from WHATSAPP_TEST_ROOT, so that a gateway in its own process needs no seam for tests.

import { WA_CERT_DETAILS } from '@whiskeysockets/baileys';

export const TRUST_VARIABLE = 'WHATSAPP_TEST_ROOT';

/** @param rootKey hex, as in `WhatsAppServer.rootKey`. Disposing trusts the former root again. */
export function trustWhatsAppServer(rootKey: string): Disposable {
  const former = WA_CERT_DETAILS.PUBLIC_KEY;
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(rootKey, 'hex');
  return {
    [Symbol.dispose]: () => {
      WA_CERT_DETAILS.PUBLIC_KEY = former;
    },
  };
}

const preloaded = process.env[TRUST_VARIABLE];
if (preloaded !== undefined) trustWhatsAppServer(preloaded);
