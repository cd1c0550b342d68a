// What a changed configuration asks for: most keys count from the next turn, some need their
// channel started again, few the whole gateway.

import type { Config } from './config.ts';
import { joinPath } from './config-json.ts';

export type ConfigChange = {
  /** Changed keys that count from the next turn on. */
  readonly nextTurn: readonly string[];
  /** Channels that have to be started again, stopped or started. */
  readonly channels: readonly string[];
  /** Changed keys that count only after the gateway was started again. */
  readonly gateway: readonly string[];
};

/** Read anew for every message, although they stand in a channel's section. */
const PER_MESSAGE = ['allowFrom', 'acceptUnverified', 'strangers'];

/** Bound when the gateway starts: the address, the store, the log. */
const AT_START = [
  'gateway.host',
  'gateway.port',
  'gateway.allowedHosts',
  'agents.defaults.workspace',
  'queue.maxPending',
  'queue.maxPendingPerChat',
  'logging',
];

export function configChange(before: Config, after: Config): ConfigChange {
  const paths = changedPaths(before, after, '');
  const gateway = paths.filter(bindsAtStart);
  const rest = paths.filter((path) => !bindsAtStart(path));
  const ofChannels = rest.filter((path) => channelOf(path) !== undefined);
  const restarting = ofChannels.flatMap((path) => channelOf(path) ?? []);
  return {
    nextTurn: rest.filter((path) => !ofChannels.includes(path)),
    channels: [...new Set(restarting)],
    gateway,
  };
}

export function isUnchanged(change: ConfigChange): boolean {
  return change.nextTurn.length + change.channels.length + change.gateway.length === 0;
}

function bindsAtStart(path: string): boolean {
  return AT_START.some((start) => path === start || path.startsWith(`${start}.`));
}

function channelOf(path: string): string | undefined {
  const [section, channel, key] = path.split('.');
  if (section !== 'channels' || key === undefined || PER_MESSAGE.includes(key)) return undefined;
  return channel;
}

/** Lists count as one value. */
function changedPaths(before: unknown, after: unknown, path: string): readonly string[] {
  if (!isSection(before) || !isSection(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  }
  const left = new Map(Object.entries(before));
  const right = new Map(Object.entries(after));
  const keys = new Set([...left.keys(), ...right.keys()]);
  return [...keys]
    .filter((key) => key !== '$schema')
    .flatMap((key) => changedPaths(left.get(key), right.get(key), joinPath(path, key)));
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
