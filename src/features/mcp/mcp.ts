// CONTRACT of the tool servers (Model Context Protocol, specification of 2025-06-18): programs and
// addresses of others, whose tools the agent gets beside its own. A server that is slow, gone or
// hostile costs its own tools and nothing else.

import type { Tool } from '../../tools/tool.ts';

export type ToolServerState =
  | { readonly kind: 'starting' }
  /** `since`: epoch milliseconds. */
  | { readonly kind: 'connected'; readonly since: number }
  /** It is being reached again; calls wait for that. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** `retryAt`: epoch milliseconds of the next try. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAt?: number };

export type ToolServerReport = {
  readonly name: string;
  readonly transport: 'stdio' | 'http';
  readonly state: ToolServerState;
  /** Names as the model gets them. */
  readonly tools: readonly string[];
};

export interface ToolServers {
  /** Of all servers that were reached, in a stable order; those that cannot work now say so. */
  tools(): readonly Tool[];
  report(): readonly ToolServerReport[];
  /** Resolves when `run` began and every server was reached or failed once. */
  tried(): Promise<void>;
  /** Keeps the servers of the configuration connected until aborted, then ends them. */
  run(signal: AbortSignal): Promise<void>;
  /** Asks for the configuration again; only servers that changed are connected anew. */
  configured(): void;
}
