// What web_fetch needs, for tests: names as given, loopback only where a test allows it.

import { createSafeFetch } from '../../src/lib/net/safe-fetch.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import type { WebFetchDeps } from '../../src/tools/web/web-fetch.ts';
import { PageReader } from '../../src/tools/web/web-fetch.ts';

export type WebToolSetup = {
  readonly allowPrivateHosts?: readonly string[];
  readonly names?: Readonly<Record<string, readonly string[]>>;
  readonly secrets?: readonly string[];
  readonly maxResultChars?: number;
};

export function createWebTools(setup: WebToolSetup = {}): WebFetchDeps {
  const { allowPrivateHosts = [], names = {}, secrets = [], maxResultChars = 10_000 } = setup;
  return {
    safeFetch: createSafeFetch({
      rules: () => ({ ports: [80, 443], allowPrivateHosts }),
      resolver: async (host) => names[host] ?? [],
    }),
    reader: new PageReader({ clock: systemClock }),
    settings: () => ({
      timeoutMs: 45_000,
      maxBytes: 2_000_000,
      maxDecompressedBytes: 5_000_000,
      maxResultChars,
    }),
    redact: (text) => secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text),
  };
}
