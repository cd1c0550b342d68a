// The composition root: from configuration to a running gateway. The order of features stands in features.ts, those of
// intake steps, turn stages and guards here.

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
  /** What becomes of a message before it is stored: the first step that decides. */
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
    'dictated mail',
    'letter text',
    'command or turn',
  ],
  /** Around a turn, from the outside in. */
  stages: [
    'switched-off',
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
  /** Around each try of a model call, from the outside in. */
  modelGuards: ['local only', 'record', 'budgets'],
  /** Of a tool call that an owner has to allow: the first that decides. */
  callGuards: ['standing approvals', 'approvals'],
};

/**
 * Takes the home and builds a gateway in it; `run` starts it.
 * @throws HomeLockedError when another gateway holds the home.
 */
export async function boot(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const resources = new AsyncDisposableStack();
  try {
    const startedAt = new Date().toISOString();
    const holder = { pid: process.pid, host: hostname(), startedAt };
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
