// The composition root: builds a running gateway from the configuration. features.ts defines the
// order of features, this file the order of intake steps, turn stages and guards.

import { hostname } from 'node:os';
import { FEATURES } from './features.ts';
import { GatewayService } from './gateway.ts';
import { holdHome } from './kernel/bus/store/home-lock.ts';
import type { LoadedConfig } from './kernel/config/files/config-file.ts';
import { LiveConfig } from './kernel/config/files/live-config.ts';
import type { Orders } from './kernel/feature.ts';
import type { Gateway, GatewayOptions } from './kernel/gateway.ts';
import { installFeatures } from './kernel/install-features.ts';
import { openKernel } from './kernel/kernel.ts';

export const ORDERS: Orders = {
  /**
   * Steps that decide about a message before it is stored; the first one that decides ends the
   * intake.
   */
  intake: [
    'pairing code',
    'link code',
    'press',
    'edit or reaction',
    'mail bridge',
    'group talk',
    'refusal',
    'unknown sender',
    'where people are',
    'numbered answer',
    'answer in words',
    'command or turn',
  ],
  /** Wrappers of a turn, from the outside in. */
  stages: [
    'switched-off',
    'taken-over',
    'workflows',
    'subagents',
    'schedule',
    'approvals',
    'edits',
    'blocked-senders',
    'limits',
    'attachments',
    'voice',
  ],
  /** Guards of each attempt of a model call, from the outside in. */
  modelGuards: ['local only', 'fallback', 'record', 'budgets'],
  /** Guards of a tool call that needs an approval; the first one that decides applies. */
  callGuards: ['standing approvals', 'approvals'],
};

/**
 * Locks the home and builds a gateway in it; `run` starts it.
 * @throws HomeLockedError when another gateway holds the home.
 */
export async function boot(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const resources = new AsyncDisposableStack();
  try {
    const startedAt = new Date().toISOString();
    const service = options.env['NANOBOT_SERVICE'];
    const self = { pid: process.pid, host: hostname(), startedAt };
    const holder = service === undefined ? self : { ...self, service };
    resources.use(await holdHome(options.home.lock, holder));
    const kernel = await openKernel(
      new LiveConfig(loaded, options.env),
      options,
      ORDERS,
      resources,
    );
    await installFeatures(kernel, FEATURES);
    const gateway = new GatewayService(kernel);
    await gateway.listen();
    return gateway;
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}
