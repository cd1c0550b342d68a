// Builds what reads the web for the agent.

import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { ReaderMemory } from '../../lib/async/permits.ts';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { PageReader } from './page-reader.ts';
import type { WebFetchDeps } from './web-fetch.ts';

export function buildWeb(
  live: LiveConfig,
  clock: Clock,
  memory: ReaderMemory,
  resources: AsyncDisposableStack,
): WebFetchDeps {
  return {
    safeFetch: createSafeFetch({ rules: () => live.config.tools.web }),
    reader: resources.use(new PageReader({ clock, memory })),
    redact: (text) => live.redact(text),
    settings() {
      const { timeoutSecs, maxBytes, maxDecompressedBytes } = live.config.tools.web;
      const { maxToolResultChars } = live.defaults;
      return {
        timeoutMs: timeoutSecs * 1000,
        maxBytes,
        maxDecompressedBytes,
        maxResultChars: maxToolResultChars,
      };
    },
  };
}
