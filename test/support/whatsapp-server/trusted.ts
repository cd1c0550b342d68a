// The server that the tests of a file share: trusted like that of WhatsApp, in order again after each test.

import { afterAll, afterEach } from 'vitest';
import type { WhatsAppServer } from './contract.ts';
import { startWhatsAppServer } from './server.ts';
import { trustWhatsAppServer } from './trust.ts';

export async function trustedWhatsAppServer(): Promise<WhatsAppServer> {
  const server = await startWhatsAppServer();
  const trust = trustWhatsAppServer(server.rootKey, server.mediaCertificate);
  afterEach(() => {
    server.clearFaults();
    server.setTime(undefined);
  });
  afterAll(async () => {
    trust[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });
  return server;
}
