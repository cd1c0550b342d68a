// The configured accounts as they run: starts, restarts and stops each as the configuration in force says,
// and reports its status.

import type { ChannelDirectory } from '../kernel/channels.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { ChannelManager } from '../kernel/delivery/manager.ts';
import type { ChannelReport, GatewayOptions } from '../kernel/gateway.ts';
import { type AccountName, accountName, accountOf } from '../kernel/message/account.ts';
import { DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import { createLanes } from '../lib/async.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { LoginOptions, LoginStep } from './channel.ts';
import {
  CHANNELS,
  type ChannelsConfig,
  type ConfiguredAccount,
  configuredAccount,
  configuredAccounts,
  createAccount,
} from './index.ts';

type ConfiguredChannelsDeps = {
  readonly live: LiveConfig;
  readonly manager: ChannelManager;
  readonly channels: ChannelDirectory;
  readonly clock: Clock;
};

export class ConfiguredChannels {
  readonly #deps: ConfiguredChannelsDeps;
  readonly #wanted: GatewayOptions['channels'];
  /** Two who restart a channel at once must not both start it. */
  readonly #restarts = createLanes();

  /** `wanted`: the channels that may run in this process. */
  constructor(deps: ConfiguredChannelsDeps, wanted: GatewayOptions['channels']) {
    this.#deps = deps;
    this.#wanted = wanted;
  }

  reports(): readonly ChannelReport[] {
    return channelReports(this.#deps.live.config.channels, this.#deps.channels);
  }

  /** Undefined where the channel is not there or connects no account so. */
  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined {
    return this.#deps.channels.get(accountName(accountOf(name)))?.login?.begin(options, signal);
  }

  async startAll(): Promise<void> {
    const accounts = configuredAccounts(this.#deps.live.config.channels);
    for (const { name } of accounts) await this.restart(name);
  }

  /** False where it is off or unknown. */
  restart(name: string): Promise<boolean> {
    return this.#restarts.run(name, () => this.#restart(accountName(accountOf(name))));
  }

  async #restart(name: AccountName): Promise<boolean> {
    const { live, manager, clock } = this.#deps;
    const found = configuredAccount(name, live.config.channels);
    if (found === undefined) {
      // One of our own doors is nobody's to stop.
      if (CHANNELS.some((each) => each.name === accountOf(name).channel)) await manager.stop(name);
      return false;
    }
    const isWanted = this.#wanted === 'all' || this.#wanted.includes(found.definition.name);
    if (!isWanted || !found.isEnabled) {
      await manager.stop(name);
      return false;
    }
    const current = () => live.config.channels;
    await manager.start(await createAccount(found, { clock, random: Math.random, current }));
    return true;
  }
}

// How each account fares, as the gateway says it of itself.

export function channelReports(
  channels: ChannelsConfig,
  running: ChannelDirectory,
): readonly ChannelReport[] {
  return configuredAccounts(channels).map((account) => {
    const { name, label, isEnabled } = account;
    if (!isEnabled) {
      const status = { kind: 'off', remedy: howToEnable(account) } as const;
      return { name, label, enabled: false, status, canLogIn: false };
    }
    const status = running.status(name) ?? { kind: 'starting' };
    const channel = running.get(name);
    const canLogIn = channel?.login !== undefined;
    const waiting = channel?.waiting?.();
    const held = waiting === undefined ? {} : { waiting };
    return { name, label, enabled: true, status, ...held, canLogIn };
  });
}

/** For a chat. */
export function reportLine({ name, status, waiting }: ChannelReport): string {
  const isInTrouble = status.kind === 'stopped' || status.kind === 'degraded';
  const held = waiting === undefined ? '' : `, ${waiting}`;
  return `${name}: ${status.kind}${isInTrouble ? `, ${status.reason}` : ''}${held}`;
}

export const howToEnable = (account: ConfiguredAccount) =>
  `Turn it on with: ${howToLogIn(account)}`;

export function howToLogIn({ definition, account }: ConfiguredAccount): string {
  const which = account === DEFAULT_ACCOUNT ? '' : ` --account ${account}`;
  return `${definition.howToEnable}${which}`;
}
