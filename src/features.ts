// The features of nanobot in the order of their installation (kernel/feature.ts says what a feature is). Nothing of
// them is loaded here but settings, so that the schema of the configuration can take up the sections they bring.

import { workflowsAreOn } from './features/workflows/settings.ts';

/** In this order: a feature may use what those before it provide. */
export const FEATURES = [
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
    isOn: workflowsAreOn,
    load: () => import('./features/workflows/install.ts'),
    off: () => import('./features/workflows/off.ts'),
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
  { name: 'turns', load: () => import('./kernel/turns/install.ts') },
];
