// Builds what reads the web for the agent.

import type { Clock } from '../lib/clock.ts';
import type { ReaderMemory } from '../lib/reader-memory.ts';
import { createSafeFetch } from '../lib/safe-fetch.ts';
import { PageReader } from '../tools/web/page-reader.ts';
import type { WebFetchDeps } from '../tools/web/web-fetch.ts';
import type { LiveConfig } from './live-config.ts';

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
