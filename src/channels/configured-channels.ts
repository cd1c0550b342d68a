// Runs the configured accounts: starts, restarts and stops each according to the current
// configuration and reports its status.

import { CHANNEL_MANAGER, type ChannelManager } from '../kernel/delivery/manager.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import type { ChannelReport } from '../kernel/gateway.ts';
import { type Instance, readInstance } from '../kernel/instance.ts';
import { type AccountName, accountName, accountOf } from '../kernel/message/ids.ts';
import type { ChannelDirectory } from '../kernel/owners.ts';
import { createLanes } from '../lib/async.ts';
import { t } from '../lib/texts.ts';
import type { LoginOptions, LoginStep } from './channel.ts';
import {
  CHANNELS,
  type ChannelsConfig,
  configuredAccount,
  configuredAccounts,
  createAccount,
  howToEnable,
} from './index.ts';

export const CONFIGURED_CHANNELS = port<ConfiguredChannels>('configured channels');

export function install(kernel: Kernel): void {
  const { add, clock } = kernel;
  const channels = new ConfiguredChannels(kernel, kernel.use(CHANNEL_MANAGER));
  add.status({
    async lines() {
      const { channelLine } = await import('./channel-lines.ts');
      const line = (each: ChannelReport) => `${each.name}: ${channelLine(each, clock.now())}`;
      return channels.channels().map(line);
    },
    fields: () => ({ channels: channels.channels() }),
  });
  kernel.provide(CONFIGURED_CHANNELS, channels);
}

export class ConfiguredChannels {
  readonly #kernel: Kernel;
  readonly #manager: ChannelManager;
  /** Serialises restarts, so that concurrent calls do not start a channel twice. */
  readonly #restarts = createLanes();
  readonly #began = Promise.withResolvers<void>();
  /** Why accounts that run in one home only are off here. */
  #held: Instance['held'];

  constructor(kernel: Kernel, manager: ChannelManager) {
    this.#kernel = kernel;
    this.#manager = manager;
  }

  channels(): readonly ChannelReport[] {
    return channelReports(this.#kernel.live.config.channels, this.#kernel.channels, this.#held);
  }

  /** Undefined if the channel does not exist or does not support this login. */
  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined {
    return this.#kernel.channels.get(accountName(accountOf(name)))?.login?.begin(options, signal);
  }

  async startAll(): Promise<void> {
    const accounts = configuredAccounts(this.#kernel.live.config.channels);
    try {
      for (const { name } of accounts) await this.restartChannel(name);
    } finally {
      this.#began.resolve();
    }
  }

  /** Resolves when each account was started once; HTTP is served before that. */
  began(): Promise<void> {
    return this.#began.promise;
  }

  /** False if the channel is off or unknown. */
  restartChannel(name: string): Promise<boolean> {
    return this.#restarts.run(name, () => this.#restart(accountName(accountOf(name))));
  }

  async #restart(name: AccountName): Promise<boolean> {
    const { live, clock, options, home } = this.#kernel;
    const manager = this.#manager;
    const found = configuredAccount(name, live.config.channels);
    if (found === undefined) {
      // The local channels cannot be stopped.
      if (CHANNELS.some((each) => each.name === accountOf(name).channel)) await manager.stop(name);
      return false;
    }
    const isWanted = options.channels === 'all' || options.channels.includes(found.definition.name);
    this.#held = (await readInstance(home))?.held;
    const isHeld = found.definition.isSingle === true && this.#held !== undefined;
    if (!isWanted || !found.isEnabled || isHeld) {
      await manager.stop(name);
      return false;
    }
    const current = () => live.config.channels;
    await manager.start(await createAccount(found, { clock, random: Math.random, current }));
    return true;
  }
}

function channelReports(
  channels: ChannelsConfig,
  running: ChannelDirectory,
  held: Instance['held'],
): readonly ChannelReport[] {
  return configuredAccounts(channels).map((account) => {
    const { name, label, isEnabled } = account;
    if (!isEnabled) {
      const status = { kind: 'off', remedy: howToEnable(account) } as const;
      return { name, label, enabled: false, status, canLogIn: false };
    }
    if (held !== undefined && account.definition.isSingle === true) {
      const status = { kind: 'off', remedy: heldText(held) } as const;
      return { name, label, enabled: true, status, canLogIn: false };
    }
    const status = running.status(name) ?? { kind: 'starting' };
    const channel = running.get(name);
    const canLogIn = channel?.login !== undefined;
    const waiting = channel?.waiting?.();
    const withheld = waiting === undefined ? {} : { waiting };
    return { name, label, enabled: true, status, ...withheld, canLogIn };
  });
}

const heldText = ({ elsewhere }: NonNullable<Instance['held']>) =>
  elsewhere === undefined
    ? t`This home was restored, and its original may still run. If it does not: nanobot backup takeover`
    : t`This account continues in ${elsewhere}. To run it here again: nanobot backup takeover`;
