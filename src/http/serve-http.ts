// Connects the HTTP server with the local channels, the logins and the state of the gateway.

import { randomBytes } from 'node:crypto';
import { CONFIGURED_CHANNELS, type ConfiguredChannels } from '../channels/configured-channels.ts';
import { STOP } from '../features/conversations/index.ts';
import type { MessageBus } from '../kernel/bus/bus.ts';
import { type Home, renewMadeToken } from '../kernel/config/files/home.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { Kernel } from '../kernel/feature.ts';
import type { LocalChannels } from '../kernel/intake/routes.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import type { GaugeValues } from '../kernel/observe/telemetry.ts';
import type { Access } from './access.ts';
import type { HttpServer } from './server.ts';

/** The scope of the page's logins in the store. */
const LOGIN_SCOPE = 'page-logins';

export type ServedHttp = {
  readonly server: HttpServer;
  readonly address: string;
  readonly access: Access;
};

/** @throws ConfigError if the token is too weak for the address; HttpServerError. */
export async function serveHttp(kernel: Kernel, localChannels: LocalChannels): Promise<ServedHttp> {
  const { assertSafeBinding, createHttpServer } = await import('./server.ts');
  const { openAccess } = await import('./access.ts');
  const { live, clock, log, store, home, bus, measuring } = kernel;
  const { typed = (text: string) => text } = kernel.options;
  const channels = kernel.use(CONFIGURED_CHANNELS);
  const stop = kernel.use(STOP);
  const { host, port, token, publicUrl } = live.config.gateway;
  const ownName = URL.parse(publicUrl)?.host;
  const allowedHosts = [...live.config.gateway.allowedHosts, ...(ownName ? [ownName] : [])];
  assertSafeBinding(host, token);
  const state = store.scope(LOGIN_SCOPE);
  const access = await openAccess({ token, state, clock, log, randomBytes });
  const server = createHttpServer({
    ...{ host, port, access, allowedHosts, localChannels, clock, log, typed },
    revokeAll: () => revokeAll(access, live, home),
    stop: (localChannel, chat) =>
      stop({ channel: channelName(localChannel), account: DEFAULT_ACCOUNT, chat: chatId(chat) }),
    routes: kernel.contributed.routes(),
    metrics: measuring.metrics,
    gauges: () => gaugesOf(channels, bus),
    audit: measuring.audit,
    redact: (text) => typed(live.redact(text)),
    health: () => ({ channels: channels.channels(), storeWaitMs: Math.round(store.waitMs()) }),
  });
  const { address } = await server.listen();
  return { server, address, access };
}

async function gaugesOf(
  configured: ConfiguredChannels,
  bus: Pick<MessageBus, 'stats'>,
): Promise<GaugeValues> {
  const { pending, running, outboundQueued, dead, unknown } = await bus.stats();
  return {
    ...{ pendingMessages: pending, runningTurns: running, queuedDeliveries: outboundQueued },
    deadMessages: dead + unknown,
    channels: configured
      .channels()
      .filter(({ status }) => status.kind !== 'off')
      .map(({ name, status }) => ({ account: name, isRunning: status.kind === 'running' })),
  };
}

/** Opens the page logged in, once. The code follows the `#`, which browsers do not send. */
export function loginLink(address: string, code: string): string {
  return `${address}/#login=${code}`;
}

/** Only the person can change a configured token. */
async function revokeAll(access: Access, live: LiveConfig, home: Home): Promise<void> {
  if (!live.loaded.hasMadeToken) return access.revokeAll();
  const token = await renewMadeToken(home);
  live.useToken(token);
  await access.useToken(token);
}
