// The composition root: from configuration to a running gateway. All order stands here.

import { hostname } from 'node:os';
import { workflowsOff } from './features/workflows/index.ts';
import { GatewayService } from './gateway.ts';
import { holdHome } from './kernel/bus/store/home-lock.ts';
import type { LoadedConfig } from './kernel/config/files/config-file.ts';
import { LiveConfig } from './kernel/config/files/live-config.ts';
import type { Feature } from './kernel/feature.ts';
import type { Gateway, GatewayOptions } from './kernel/gateway.ts';
import { installFeatures } from './kernel/install-features.ts';
import { openKernel } from './kernel/kernel.ts';
import { installTurns } from './kernel/turns/install.ts';

/** In this order: a feature may use what those before it provide. */
export const FEATURES: readonly Feature[] = [
  { name: 'models', load: () => import('./agent/models.ts') },
  { name: 'local only', load: () => import('./features/local-models/install-local-only.ts') },
  { name: 'spending', load: () => import('./features/spending/install.ts') },
  { name: 'modes', load: () => import('./features/modes/install.ts') },
  { name: 'local models', load: () => import('./features/local-models/install.ts') },
  { name: 'steadiness', load: () => import('./features/steadiness/steadiness.ts') },
  { name: 'skills', load: () => import('./features/skills/catalog.ts') },
  { name: 'side model', load: () => import('./agent/side-model.ts') },
  { name: 'memory', load: () => import('./features/memory/install.ts') },
  { name: 'tool servers', load: () => import('./features/mcp/tool-servers.ts') },
  { name: 'plans', load: () => import('./features/plans/plans.ts') },
  { name: 'exec', load: () => import('./tools/exec/exec.ts') },
  { name: 'tools', load: () => import('./tools/install.ts') },
  { name: 'agent', load: () => import('./agent/install.ts') },
  { name: 'approvals', load: () => import('./features/approvals/install.ts') },
  { name: 'subagents', load: () => import('./features/subagents/install.ts') },
  {
    name: 'workflows',
    isOn: ({ agents }) => agents.workflows.enabled,
    load: () => import('./features/workflows/install.ts'),
    off: workflowsOff,
  },
  { name: 'letters', load: () => import('./features/letters/install.ts') },
  { name: 'mail bridge', load: () => import('./features/mail-bridge/mail-bridge.ts') },
  { name: 'schedule', load: () => import('./features/schedule/install.ts') },
  { name: 'commands', load: () => import('./kernel/commands/install.ts') },
  { name: 'conversations', load: () => import('./kernel/commands/install-conversations.ts') },
  { name: 'health', load: () => import('./features/health/channel-watch.ts') },
  { name: 'voice', load: () => import('./features/voice/install.ts') },
  { name: 'people', load: () => import('./features/people/install.ts') },
  { name: 'upkeep', load: () => import('./features/health/upkeep.ts') },
  { name: 'delivery', load: () => import('./kernel/delivery/install.ts') },
];

/** The stages of a turn, from the outside in. */
const STAGES = [
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
];

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
    const kernel = await openKernel(new LiveConfig(loaded, options.env), options, resources);
    await installFeatures(kernel, FEATURES);
    installTurns(kernel, STAGES);
    const gateway = new GatewayService(kernel);
    await gateway.listen();
    return gateway;
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}
