// Installs the channel manager, which runs the accounts of the channels and delivers what is for them.

import { accountsOf, CHANNELS } from '../../channels/index.ts';
import { RECEIVER } from '../../features/people/install.ts';
import { type Kernel, port } from '../feature.ts';
import { createSharedArrivals } from '../intake/receive.ts';
import { type ChannelManager, createChannelManager } from './manager.ts';
import { createUndelivered } from './undelivered.ts';

export const CHANNEL_MANAGER = port<ChannelManager>('channel manager');

export function install(kernel: Kernel): void {
  const { live, clock, log, store, bus, media, channels, judge, owners } = kernel;
  const arrivals = createSharedArrivals({
    ...{ state: store, judge, clock },
    hasSeveral(channel) {
      const definition = CHANNELS.find(({ name }) => name === channel);
      return definition !== undefined && accountsOf(definition, live.config.channels).length > 1;
    },
  });
  const manager = createChannelManager({
    ...{ bus, judge, arrivals, state: store, media, clock, log, directory: channels },
    receiver: kernel.use(RECEIVER),
    timeZone: () => live.config.sessions.timeZone,
    alert: owners.alert,
    tell: owners.tell,
    setAside: createUndelivered({ ...{ bus, clock, log }, ...owners }),
    onStopped: (name, { reason, remedy }) =>
      kernel.options.foreground(live.redact(`${name} stopped: ${reason}. ${remedy}`)),
  });
  kernel.provide(CHANNEL_MANAGER, manager);
}
