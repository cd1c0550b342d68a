// The doors of our own, open to whoever holds the gateway's token or a login of the page, and the
// gate of each platform channel.

import { createDoorChannel } from '../channels/door/door-channel.ts';
import { CHANNELS } from '../channels/index.ts';
import type { Config } from '../core/config.ts';
import { channelName } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';

/** The sender id of whoever writes through a door of our own. */
const DOOR_USER = 'owner';

export type Doors = {
  readonly web: ReturnType<typeof createDoorChannel>;
  readonly terminal: ReturnType<typeof createDoorChannel>;
};

/** `maxFileBytes`: the largest file that the page may upload. */
export function createDoors(clock: Clock, maxFileBytes: () => number): Doors {
  return {
    web: createDoorChannel({
      name: channelName('web'),
      coalesces: true,
      choices: 'buttons',
      maxFileBytes,
      clock,
    }),
    terminal: createDoorChannel({ name: channelName('terminal'), coalesces: false, clock }),
  };
}

export function policyOf(channel: string, config: Config) {
  const definition = CHANNELS.find(({ name }) => name === channel);
  return (
    definition?.policy(config.channels) ?? {
      allowFrom: [],
      owners: [DOOR_USER],
      acceptUnverified: false,
      strangers: 'closed' as const,
      medium: 'chat' as const,
      bridge: 'off' as const,
    }
  );
}
