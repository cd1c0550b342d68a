// The doors of our own, open to whoever holds the gateway's token or a login of the page, and the
// gate of each platform channel.

import {
  accountsOf,
  CHANNELS,
  type ChannelDefinition,
  configuredAccount,
} from '../../channels/index.ts';
import { createDoorChannel } from '../../channels/web/door-channel.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ConfiguredGate } from '../access/admission.ts';
import type { Config } from '../config/config.ts';
import { accountName, accountOf } from '../message/account.ts';
import { type AccountId, channelName } from '../message/ids.ts';

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

const OWN_DOOR = {
  allowFrom: [],
  owners: [DOOR_USER],
  acceptUnverified: false,
  strangers: 'closed',
  medium: 'chat',
  bridge: 'off',
} as const;

/** Lets nobody in: an account that is not configured any more. */
const CLOSED = { ...OWN_DOOR, owners: [] };

/** By the name of an account. */
export function policyOf(
  account: string,
  { channels }: Config,
): ReturnType<ChannelDefinition['policy']> {
  const configured = configuredAccount(account, channels);
  if (configured !== undefined) return configured.definition.policy(configured.config);
  const { channel } = accountOf(account);
  const first = CHANNELS.find(({ name }) => name === channel)?.policy(channels);
  return first === undefined ? OWN_DOOR : { ...CLOSED, medium: first.medium };
}

/** Without an account: the most that any of the channel's gives. */
export function gateOf(channel: string, config: Config, account?: AccountId): ConfiguredGate {
  if (account !== undefined) {
    return policyOf(accountName({ channel: channelName(channel), account }), config);
  }
  const definition = CHANNELS.find(({ name }) => name === channel);
  if (definition === undefined) return OWN_DOOR;
  const gates = accountsOf(definition, config.channels).map(({ config }) =>
    definition.policy(config),
  );
  const isOpen = gates.some(({ strangers }) => strangers === 'open');
  return {
    allowFrom: gates.flatMap(({ allowFrom }) => allowFrom),
    owners: gates.flatMap(({ owners }) => owners),
    strangers: isOpen ? 'open' : 'closed',
  };
}
