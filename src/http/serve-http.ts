// Connects the HTTP server with the local channels, the logins and the state of the gateway.

import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { CONFIGURED_CHANNELS, type ConfiguredChannels } from '../channels/configured-channels.ts';
import { STOP } from '../features/conversations/index.ts';
import { type Home, programVersion, renewMadeToken } from '../kernel/config/files/home.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { Kernel } from '../kernel/feature.ts';
import type { LocalChannels } from '../kernel/intake/routes.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import { gauge } from '../kernel/observe/metrics.ts';
import type { Gauge } from '../kernel/observe/telemetry.ts';
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
  const { live, clock, log, store, home, measuring } = kernel;
  const { typed = (text: string) => text } = kernel.options;
  const channels = kernel.use(CONFIGURED_CHANNELS);
  const stop = kernel.use(STOP);
  const { host, port, token, publicUrl } = live.config.gateway;
  const ownName = URL.parse(publicUrl)?.host;
  const allowedHosts = [...live.config.gateway.allowedHosts, ...(ownName ? [ownName] : [])];
  assertSafeBinding(host, token);
  // Another version may replace the files while this one runs.
  const version = programVersion();
  const state = store.scope(LOGIN_SCOPE);
  const shared = store.shared && { revision: () => store.revision(LOGIN_SCOPE) };
  const access = await openAccess({ token, state, clock, log, randomBytes, ...shared });
  const server = createHttpServer({
    ...{ host, port, access, allowedHosts, localChannels, clock, log, typed },
    revokeAll: () => revokeAll(access, live, home),
    stop: (localChannel, chat) =>
      stop({ channel: channelName(localChannel), account: DEFAULT_ACCOUNT, chat: chatId(chat) }),
    routes: kernel.contributed.routes(),
    metrics: measuring.metrics,
    gauges: () => gaugesOf(kernel, channels, version),
    audit: measuring.audit,
    redact: (text) => typed(live.redact(text)),
    health: () => ({ channels: channels.channels(), storeWaitMs: Math.round(store.waitMs()) }),
  });
  const { address } = await server.listen();
  return { server, address, access };
}

async function gaugesOf(
  kernel: Kernel,
  configured: ConfiguredChannels,
  version: string,
): Promise<readonly Gauge[]> {
  const { bus, store, clock, home } = kernel;
  const { pending, running, outboundQueued, dead, unknown, oldestPendingAt } = await bus.stats();
  const disk = await statfs(home.root);
  const now = clock.now();
  const started = configured
    .channels()
    .filter(({ status }) => status.kind !== 'off' && status.kind !== 'elsewhere');
  const idle = started.flatMap(({ name: account, status }) =>
    status.kind === 'running' ? [[{ account }, secondsSince(status.activeAt, now)] as const] : [],
  );
  const contributed = kernel.contributed.gauges().map((read) => read());
  return [
    gauge('info', 'The version that runs.', [[{ version }, 1]]),
    gauge('queue_messages', 'Messages by where they wait.', [
      [{ state: 'pending' }, pending],
      [{ state: 'running' }, running],
      [{ state: 'outbound' }, outboundQueued],
      [{ state: 'dead' }, dead + unknown],
    ]),
    gauge('queue_oldest_seconds', 'How long the oldest pending message has waited.', [
      [{}, secondsSince(oldestPendingAt ?? now, now)],
    ]),
    gauge(
      'channel_up',
      'Whether a channel runs.',
      started.map(({ name, status }) => [{ account: name }, status.kind === 'running' ? 1 : 0]),
    ),
    gauge('channel_idle_seconds', 'Since the last completed poll, IDLE or ping.', idle),
    gauge('store_wait_seconds', 'How long the disk has been delaying a write of the store.', [
      [{}, store.waitMs() / 1000],
    ]),
    gauge('disk_free_bytes', 'Free space on the disk of the home.', [
      [{}, disk.bavail * disk.bsize],
    ]),
    gauge('disk_size_bytes', 'Size of the disk of the home.', [[{}, disk.blocks * disk.bsize]]),
    ...(await Promise.all(contributed)).flat(),
  ];
}

const secondsSince = (at: number, now: number) => Math.max(0, now - at) / 1000;

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
