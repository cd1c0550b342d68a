// The features of nanobot in the order of their installation (kernel/feature.ts defines a feature),
// and their sections of the configuration. Loads nothing else of them.

import { clusterSchema } from './features/cluster/settings.ts';
import {
  localModelConflicts,
  localModelsSchema,
  modelCapabilitiesSchema,
} from './features/local-models/settings.ts';
import { mcpServersSchema, toolServerConflicts } from './features/mcp/settings.ts';
import { modeConflicts, modeFields } from './features/modes/settings.ts';
import {
  cronSchema,
  heartbeatSchema,
  noticesSchema,
  quietHoursSchema,
  updateSchema,
} from './features/schedule/settings.ts';
import { searchConflicts, searchSchema } from './features/semantic-search/settings.ts';
import { steadinessFields } from './features/steadiness/settings.ts';
import { calibrationSchema, subagentsSchema, votingSchema } from './features/subagents/settings.ts';
import { voiceConflicts, voiceSchema } from './features/voice/settings.ts';
import { workflowsSchema } from './features/workflows/settings.ts';

/** The sections of features in the configuration. */
export const SECTIONS = {
  notices: noticesSchema.prefault({}).describe('What the gateway tells the owner by itself.'),
  cron: cronSchema.prefault({}).describe('Scheduled jobs.'),
  heartbeat: heartbeatSchema.prefault({}).describe('The regular look at HEARTBEAT.md.'),
  quietHours: quietHoursSchema,
  modelCapabilities: modelCapabilitiesSchema,
  localModels: localModelsSchema.describe('Models on this machine.'),
  cluster: clusterSchema.describe('Models on other machines of your own.'),
  mcpServers: mcpServersSchema,
  voice: voiceSchema.describe('Voice messages: how they are understood and spoken.'),
  search: searchSchema.describe('Search in notes, conversations and files.'),
  update: updateSchema.describe('New versions of nanobot.'),
};

/** Their sections below `agents`. */
export const AGENT_SECTIONS = {
  subagents: subagentsSchema,
  workflows: workflowsSchema,
  voting: votingSchema,
  calibration: calibrationSchema,
  ...modeFields,
  ...steadinessFields,
};

/** Checks of settings that are valid alone but not together. */
export const FEATURE_CONFLICTS = [
  toolServerConflicts,
  voiceConflicts,
  modeConflicts,
  localModelConflicts,
  searchConflicts,
];

/** Installed in this order: a feature may use what earlier ones provide. */
export const FEATURES = [
  { name: 'models', load: () => import('./agent/models.ts') },
  { name: 'local only', load: () => import('./features/local-models/local-only.ts') },
  { name: 'spending', load: () => import('./features/spending/index.ts') },
  { name: 'modes', load: () => import('./features/modes/index.ts') },
  { name: 'local models', load: () => import('./features/local-models/index.ts') },
  { name: 'steadiness', load: () => import('./features/steadiness/index.ts') },
  { name: 'skills', load: () => import('./features/skills/index.ts') },
  { name: 'side model', load: () => import('./agent/side-model.ts') },
  { name: 'memory', load: () => import('./features/memory/index.ts') },
  { name: 'tool servers', load: () => import('./features/mcp/index.ts') },
  { name: 'plans', load: () => import('./features/plans/index.ts') },
  {
    name: 'semantic search',
    switchedBy: 'search.embeddings.model',
    load: () => import('./features/semantic-search/index.ts'),
  },
  { name: 'exec', load: () => import('./tools/exec/exec.ts') },
  { name: 'tools', load: () => import('./tools/install.ts') },
  { name: 'agent', load: () => import('./agent/install.ts') },
  { name: 'approvals', load: () => import('./features/approvals/index.ts') },
  { name: 'subagents', load: () => import('./features/subagents/index.ts') },
  {
    name: 'workflows',
    switchedBy: 'agents.workflows.enabled',
    load: () => import('./features/workflows/install.ts'),
    off: () => import('./features/workflows/off.ts'),
  },
  { name: 'letters', load: () => import('./features/letters/index.ts') },
  { name: 'mail bridge', load: () => import('./features/mail-bridge/index.ts') },
  { name: 'schedule', load: () => import('./features/schedule/index.ts') },
  { name: 'commands', load: () => import('./features/conversations/stop-command.ts') },
  { name: 'conversations', load: () => import('./features/conversations/index.ts') },
  { name: 'voice', load: () => import('./features/voice/index.ts') },
  { name: 'people', load: () => import('./features/people/index.ts') },
  { name: 'configuration', load: () => import('./features/configuration/index.ts') },
  { name: 'update', load: () => import('./features/update/index.ts') },
  { name: 'upkeep', load: () => import('./features/health/upkeep.ts') },
  { name: 'backups', load: () => import('./features/backup/index.ts') },
  { name: 'delivery', load: () => import('./kernel/delivery/manager.ts') },
  { name: 'channels', load: () => import('./channels/configured-channels.ts') },
  { name: 'health', load: () => import('./features/health/index.ts') },
  { name: 'setup', load: () => import('./features/setup/index.ts') },
  { name: 'turns', load: () => import('./kernel/turns/dispatcher.ts') },
];
