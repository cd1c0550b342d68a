// What a connection stands on: the vendor's transport, and what only the way to the server knows.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

export type Link = {
  readonly transport: Transport;
  /** Why it ended, in words for an owner; undefined where nothing is known. */
  fault(): string | undefined;
  close(): Promise<void>;
};
