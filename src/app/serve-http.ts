// Connects the HTTP server with the doors, the logins and the state of the gateway.

import { randomBytes } from 'node:crypto';
import type { SpendingGuard } from '../agent/spending.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { ChannelName } from '../core/ids.ts';
import { channelName } from '../core/ids.ts';
import type { ChannelManager } from '../gateway/manager.ts';
import type { People } from '../gateway/people.ts';
import { createPeopleDesk } from '../gateway/people-desk.ts';
import type { Questions } from '../gateway/questions.ts';
import type { Access } from '../http/access.ts';
import type { ChannelControl } from '../http/channel-routes.ts';
import type { HttpServer } from '../http/server.ts';
import type { GatewayStatus } from '../http/status.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { StateStore } from '../store/store.ts';
import type { GaugeValues } from '../telemetry/telemetry.ts';
import { buildSelfTest } from './build-self-test.ts';
import type { Measuring } from './build-telemetry.ts';
import type { ToolingReport } from './build-tool-servers.ts';
import type { Doors } from './doors.ts';
import type { GatewayOptions } from './gateway.ts';
import type { Home } from './home.ts';
import type { LiveConfig } from './live-config.ts';
import { renewMadeToken } from './made-token.ts';
import { DOOR_OWNER } from './own-doors.ts';

/** Where the page's logins live in the store. */
const LOGIN_SCOPE = 'page-logins';

export type HttpParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly doors: Doors;
  readonly people: People;
  readonly manager: ChannelManager;
  readonly questions: Pick<Questions, 'open' | 'answer' | 'withdraw'>;
  readonly bus: Pick<MessageBus, 'stats'>;
  readonly measuring: Measuring;
  readonly spending: Pick<SpendingGuard, 'reserve'>;
};

export interface Served extends ChannelControl {
  readonly model: string;
  tooling(): ToolingReport;
  peers(): NonNullable<GatewayStatus['peers']>;
  stopChat(channel: ChannelName, chat: string): Promise<void>;
}

export type ServedHttp = {
  readonly server: HttpServer;
  readonly address: string;
  readonly access: Access;
};

/** @throws ConfigError when the token does not protect the address; HttpServerError. */
export async function serveHttp(
  gateway: Served,
  parts: HttpParts,
  { home, typed = (text) => text }: GatewayOptions,
): Promise<ServedHttp> {
  const { createHttpServer } = await import('../http/server.ts');
  const { openAccess } = await import('../http/access.ts');
  const { assertSafeBinding } = await import('../http/safe-binding.ts');
  const { live, clock, log, store, doors, people, questions, manager, bus, measuring } = parts;
  const { host, port, token, allowedHosts } = live.config.gateway;
  assertSafeBinding(host, token);
  const state = store.scope(LOGIN_SCOPE);
  const access = await openAccess({ token, state, clock, log, randomBytes });
  const server = createHttpServer({
    host,
    port,
    access,
    allowedHosts,
    doors,
    clock,
    log,
    revokeAll: () => revokeAll(access, live, home),
    stop: (door, chat) => gateway.stopChat(channelName(door), chat),
    control: gateway,
    selfTest: buildSelfTest({ channels: () => gateway.channels(), manager, people, clock, log }),
    metrics: measuring.metrics,
    gauges: () => gaugesOf(gateway, bus),
    audit: measuring.audit,
    spending: parts.spending,
    people: createPeopleDesk({ people, questions, owner: DOOR_OWNER }),
    redact: (text) => typed(live.redact(text)),
    typed,
    status: () => ({
      model: gateway.model,
      channels: gateway.channels(),
      tooling: gateway.tooling(),
      peers: gateway.peers(),
    }),
  });
  const { address } = await server.listen();
  return { server, address, access };
}

async function gaugesOf(gateway: Served, bus: Pick<MessageBus, 'stats'>): Promise<GaugeValues> {
  const { pending, running, outboundQueued, dead, unknown } = await bus.stats();
  return {
    ...{ pendingMessages: pending, runningTurns: running, queuedDeliveries: outboundQueued },
    deadMessages: dead + unknown,
    channels: gateway
      .channels()
      .filter(({ status }) => status.kind !== 'off')
      .map(({ name, status }) => ({ account: name, isRunning: status.kind === 'running' })),
  };
}

/** Opens the page logged in, once. The code stands behind the `#`, which no browser sends. */
export function loginLink(address: string, code: string): string {
  return `${address}/#login=${code}`;
}

/** A configured token is its person's to change. */
async function revokeAll(access: Access, live: LiveConfig, home: Home): Promise<void> {
  if (!live.loaded.hasMadeToken) return access.revokeAll();
  const token = await renewMadeToken(home);
  live.useToken(token);
  await access.useToken(token);
}
