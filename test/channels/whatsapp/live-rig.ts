// The whole WhatsApp channel on the real store, linked to a phone of the WhatsApp server, with a host
// in memory: for tests of what comes in.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Channel, ChannelHost } from '../../../src/channels/channel.ts';
import { createWhatsAppChannel } from '../../../src/channels/whatsapp/whatsapp.ts';
import { openEmbeddedStore } from '../../../src/kernel/bus/store/embedded.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import { type ConfigInput, configSchema } from '../../../src/kernel/config/config.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import type { Phone, WhatsAppServer } from '../../support/whatsapp-server/contract.ts';

type WhatsAppInput = NonNullable<NonNullable<ConfigInput['channels']>['whatsapp']>;

export type LiveRig = AsyncDisposable & {
  readonly host: MemoryHost;
  readonly phone: Phone;
  /** Of the run of now. */
  readonly channel: Channel;
  /** Ends the channel as a shutdown does; what is sent meanwhile waits on the server. */
  stop(): Promise<void>;
  /** Takes it up again on the same state; resolves once it is online. */
  start(): Promise<void>;
};

export async function startLiveRig(
  server: WhatsAppServer,
  input: WhatsAppInput = {},
  options: {
    readonly clock?: Clock;
    readonly wrap?: (state: KeyValueStore) => KeyValueStore;
  } = {},
): Promise<LiveRig> {
  const { clock = systemClock, wrap = (state) => state } = options;
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-whatsapp-'));
  const path = join(folder, 'state.db');
  const store = await openEmbeddedStore({ path, clock: systemClock, log: silentLogger });
  const state = wrap(store.scope('channel:whatsapp:default'));
  const host: MemoryHost & ChannelHost = Object.assign(createMemoryHost(clock), { state });
  const phone = await server.phone();
  const whatsapp = { enabled: true, socketUrl: server.url, ...input };
  const config = configSchema.parse({ channels: { whatsapp } }).channels.whatsapp;
  let controller = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let channel: Channel | undefined;

  function run() {
    controller = new AbortController();
    channel = createWhatsAppChannel(config, {
      random: () => 0,
      allowFrom: () => config.allowFrom,
    });
    running = channel.run(host, controller.signal);
    running.catch(() => undefined);
  }

  async function stop() {
    controller.abort();
    await running;
  }

  const current = () => {
    if (channel === undefined) throw new Error('the channel was not started');
    return channel;
  };

  /** Both ends know of the connection; the server does before the channel. */
  async function online(before: number) {
    await phone.online();
    await host.until(({ statuses }) =>
      statuses.slice(before).some(({ kind }) => kind === 'running'),
    );
  }

  run();
  for await (const step of current().login?.begin({}, controller.signal) ?? []) {
    if (step.kind === 'show_qr' && !phone.linked) await phone.scan(step.qr);
    if (step.kind === 'failed') throw new Error(step.reason);
  }
  await online(0);
  return {
    host,
    phone,
    get channel() {
      return current();
    },
    stop,
    async start() {
      const before = host.statuses.length;
      run();
      await online(before);
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
