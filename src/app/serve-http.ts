// Connects the HTTP server with the doors and the state of the gateway.

import type { ChannelName } from '../core/ids.ts';
import { channelName } from '../core/ids.ts';
import type { ChannelControl } from '../http/channel-routes.ts';
import type { HttpServer } from '../http/server.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Doors } from './doors.ts';
import type { LiveConfig } from './live-config.ts';

export type HttpParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly doors: Doors;
};

export interface Served extends ChannelControl {
  readonly model: string;
  stopChat(channel: ChannelName, chat: string): Promise<void>;
}

export async function serveHttp(
  gateway: Served,
  { live, clock, log, doors }: HttpParts,
): Promise<{ readonly server: HttpServer; readonly address: string }> {
  const { createHttpServer } = await import('../http/server.ts');
  const { host, port, token, allowedHosts } = live.config.gateway;
  const server = createHttpServer({
    host,
    port,
    token,
    allowedHosts,
    doors,
    clock,
    log,
    stop: (door, chat) => gateway.stopChat(channelName(door), chat),
    control: gateway,
    status: () => ({ model: gateway.model, channels: gateway.channels() }),
  });
  const { address } = await server.listen();
  return { server, address };
}
