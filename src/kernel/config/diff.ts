// What a changed configuration requires: most keys apply from the next turn, some need a restart of
// their channel, few of the whole gateway.

import { FEATURES } from '../../features.ts';
import { accountName, channelName } from '../message/ids.ts';
import type { Config } from './config.ts';
import { accountViews } from './config.ts';
import { changedPaths, member } from './json-paths.ts';

export type ConfigChange = {
  /** Changed keys that apply from the next turn on. */
  readonly nextTurn: readonly string[];
  /** Accounts, by name, that must be restarted, stopped or started. */
  readonly channels: readonly string[];
  /** Changed keys that apply only after a restart of the gateway. */
  readonly gateway: readonly string[];
};

/** Read for every message, although they are in a channel's section. */
const PER_MESSAGE = ['allowFrom', 'acceptUnverified', 'strangers', 'bridge'];

/**
 * Bound when the gateway starts: the address, the store, the log, metrics, which features are on.
 */
export const AT_START: readonly string[] = [
  'gateway.host',
  'gateway.port',
  'gateway.allowedHosts',
  'gateway.publicUrl',
  'gateway.drainSecs',
  'agents.defaults.workspace',
  'store.engine',
  'store.url',
  'store.poolUrl',
  'store.onDamage',
  'storage',
  'queue.maxPending',
  'queue.maxPendingPerChat',
  'localModels.start',
  'localModels.stop',
  'logging',
  'telemetry',
  ...FEATURES.flatMap(
    (feature: { readonly name: string; readonly switchedBy?: string }) => feature.switchedBy ?? [],
  ),
];

export function configChange(before: Config, after: Config): ConfigChange {
  const paths = changedPaths(before, after);
  const gateway = paths.filter(bindsAtStart);
  const rest = paths.filter((path) => !bindsAtStart(path));
  return {
    nextTurn: rest.filter((path) => !isOfChannel(path)),
    channels: rest.some(isOfChannel) ? restarting(before.channels, after.channels) : [],
    gateway,
  };
}

/** When a changed key applies. */
export function appliesAt(path: string): 'turn' | 'channel' | 'start' {
  if (bindsAtStart(path)) return 'start';
  return isOfChannel(path) ? 'channel' : 'turn';
}

export function isUnchanged(change: ConfigChange): boolean {
  return change.nextTurn.length + change.channels.length + change.gateway.length === 0;
}

function bindsAtStart(path: string): boolean {
  return AT_START.some((start) => path === start || path.startsWith(`${start}.`));
}

function isOfChannel(path: string): boolean {
  const [section, , ...keys] = path.split('.');
  const [key, , ofAccount] = keys;
  const read = key === 'accounts' && ofAccount !== undefined ? ofAccount : key;
  return section === 'channels' && read !== undefined && !PER_MESSAGE.includes(read);
}

/** A setting that further accounts inherit from the first restarts them too. */
function restarting(before: Config['channels'], after: Config['channels']): readonly string[] {
  return Object.keys(after).flatMap((channel) => {
    const was = accountViews(before, channel);
    const is = accountViews(after, channel);
    const accounts = [...new Set([...was.keys(), ...is.keys()])];
    const changed = accounts.filter((account) =>
      changedPaths(member(was.get(account), channel), member(is.get(account), channel)).some(
        (path) => !PER_MESSAGE.includes(path),
      ),
    );
    return changed.map((account) => accountName({ channel: channelName(channel), account }));
  });
}
