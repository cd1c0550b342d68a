// Installs the features that are on, in order. A feature that is off is not loaded: its chat
// commands say that it is off, turns on its internal channels wait until it is on again, and its
// personal data is found and erased by code that is loaded on demand.

import { readOnce } from '../lib/async.ts';
import { TurnDeferred } from './bus/bus.ts';
import { commandsOf } from './commands/command-access.ts';
import type { Config } from './config/config.ts';
import { member } from './config/json-paths.ts';
import type { Feature, Kernel, WhenOff } from './feature.ts';
import { exported, type PersonalData } from './personal-data.ts';
import { inOrder, PortError } from './ports.ts';

/** How soon the work of a feature continues after it was switched on. */
const LOOK_AGAIN_MS = 10_000;

/**
 * @throws PortError if a feature uses a later one; OrderError for a guard that the order does not
 * name
 */
export async function installFeatures(kernel: Kernel, features: readonly Feature[]): Promise<void> {
  const { live } = kernel;
  const isOff = ({ switchedBy }: Feature) =>
    switchedBy !== undefined && [false, ''].includes(settingAt(live.config, switchedBy) as never);
  const offs = features.filter(isOff).flatMap(({ off }) => off?.() ?? []);
  installOff(
    kernel,
    (await Promise.all(offs)).map(({ off }) => off),
  );
  const on = features.filter((feature) => !isOff(feature));
  // In parallel, so that a start does not wait for one file after the other.
  const loaded = await Promise.all(
    on.map(async (feature) => ({ feature, code: await feature.load() })),
  );
  for (const { feature, code } of loaded) {
    await code.install(kernel, () => sectionOf(live.config, feature));
  }
  inOrder('model guards', kernel.orders.modelGuards, kernel.contributed.modelGuards());
}

const settingAt = (config: Config, path: string): unknown =>
  path.split('.').reduce<unknown>(member, config);

/** The configuration was validated by the feature's schema. */
function sectionOf(config: Config, { name, settings }: Feature): never {
  if (settings === undefined) throw new PortError('no_settings', `"${name}" has no settings`);
  return settingAt(config, settings.at) as never;
}

function installOff(kernel: Kernel, features: readonly WhenOff[]): void {
  const { add, clock } = kernel;
  for (const { text, commands, ...feature } of features) {
    const says = Object.keys(commands).map((name) => [name, async () => text]);
    add.command(...commandsOf(commands, Object.fromEntries(says)));
    add.personalData(loadedOnUse(readOnce(() => feature.personalData(kernel))));
  }
  add.stage({
    name: 'switched-off',
    async run(turn, next) {
      const off = features.find(({ channels }) => channels.includes(turn.chat.channel));
      if (off !== undefined) throw new TurnDeferred(off.text, clock.now() + LOOK_AGAIN_MS);
      return next(turn);
    },
  });
}

function loadedOnUse(load: () => Promise<PersonalData>): PersonalData {
  return {
    chatsBelow: async (...asked) => (await (await load()).chatsBelow?.(...asked)) ?? [],
    find: async (...asked) => (await (await load()).find?.(...asked)) ?? [],
    async *export(...asked) {
      yield* exported(await load(), ...asked);
    },
    forget: async (...asked) => (await (await load()).forget?.(...asked)) ?? 0,
  };
}
