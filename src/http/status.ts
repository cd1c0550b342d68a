// What the gateway says of itself over HTTP, and the verdict whether it is ready: a channel that
// should run is ready while it completes polls, IDLEs or pings.

import type { ChannelStatus } from '../channels/channel.ts';
import type { SeenPeer } from '../features/cluster/cluster-desk.ts';
import type { ToolServerReport } from '../features/mcp/mcp.ts';
import type { MissingTool } from '../tools/tool.ts';

export type GatewayStatus = {
  /** The model that answers unless a chat chose another. */
  readonly model: string;
  readonly channels: readonly {
    readonly name: string;
    readonly status: ChannelStatus | { readonly kind: 'off'; readonly remedy: string };
    /** What a limit holds back and why. */
    readonly waiting?: string;
  }[];
  /** Servers whose tools the agent gets, and tools that cannot work. */
  readonly tooling: {
    readonly servers: readonly ToolServerReport[];
    readonly missing: readonly MissingTool[];
  };
  /** Other machines that run models; left out: nothing is known of any. */
  readonly peers?: readonly SeenPeer[];
};

/** A channel that completed nothing for so long has stalled. */
const STALLED_MS = 150_000;

export type Readiness = {
  readonly ready: boolean;
  readonly channels: readonly {
    readonly name: string;
    readonly ready: boolean;
    readonly status: GatewayStatus['channels'][number]['status'];
    readonly waiting?: string;
    /** Since the last completed poll, IDLE or ping; absent where there is none. */
    readonly idleMs?: number;
  }[];
};

/** A channel that is off is nobody's concern; one that is starting or failing is not ready. */
export function readinessOf({ channels }: Omit<GatewayStatus, 'tooling'>, now: number): Readiness {
  const judged = channels.map(({ name, status, waiting }) => {
    const held = waiting === undefined ? {} : { waiting };
    if (status.kind !== 'running') return { name, ready: status.kind === 'off', status, ...held };
    const idleMs = Math.max(0, now - status.activeAt);
    return { name, ready: idleMs <= STALLED_MS, status, ...held, idleMs };
  });
  return { ready: judged.every(({ ready }) => ready), channels: judged };
}
