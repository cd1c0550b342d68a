// Makes Baileys trust a test server: its certificate root, and the media host's certificate. As a
// preload (`node --import`) it takes both from the environment, so that a gateway in its own process
// needs no seam for tests.

import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { WA_CERT_DETAILS } from '@whiskeysockets/baileys';
import type { WhatsAppServer } from './contract.ts';

export const TRUST_VARIABLE = 'WHATSAPP_TEST_ROOT';
const MEDIA_VARIABLE = 'WHATSAPP_TEST_MEDIA_CERTIFICATE';

/** What a child process needs in its environment to trust the server. */
export function trustVariables(
  server: Pick<WhatsAppServer, 'rootKey' | 'mediaCertificate'>,
): Readonly<Record<string, string>> {
  return {
    NODE_OPTIONS: `--import ${import.meta.url}`,
    [TRUST_VARIABLE]: server.rootKey,
    [MEDIA_VARIABLE]: server.mediaCertificate,
  };
}

/**
 * Trusts in this process. Disposing trusts as before.
 * @param rootKey hex, as in `WhatsAppServer.rootKey`
 * @param mediaCertificate PEM, as in `WhatsAppServer.mediaCertificate`
 */
export function trustWhatsAppServer(rootKey: string, mediaCertificate?: string): Disposable {
  const formerRoot = WA_CERT_DETAILS.PUBLIC_KEY;
  const formerAuthorities = getCACertificates('default');
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(rootKey, 'hex');
  if (mediaCertificate) setDefaultCACertificates([...formerAuthorities, mediaCertificate]);
  return {
    [Symbol.dispose]: () => {
      WA_CERT_DETAILS.PUBLIC_KEY = formerRoot;
      if (mediaCertificate) setDefaultCACertificates(formerAuthorities);
    },
  };
}

const { [TRUST_VARIABLE]: root, [MEDIA_VARIABLE]: certificate } = process.env;
if (root !== undefined) trustWhatsAppServer(root, certificate);
