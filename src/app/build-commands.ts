// Builds what `/commands` work with: of every part what it has to say or lets be changed.

import type { BuiltAgent } from '../agent/build-agent.ts';
import type { Deciding } from '../features/approvals/build-decisions.ts';
import type { LocalModels } from '../features/local-models/local-models.ts';
import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { BuiltModes } from '../features/modes/build-modes.ts';
import type { People } from '../features/people/people.ts';
import type { ChannelDirectory } from '../kernel/channels.ts';
import type { CommandDeps } from '../kernel/commands/command.ts';
import { createUndo } from '../kernel/commands/conversation-commands.ts';
import type { Home } from '../kernel/config/files/home.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { problemLines } from '../kernel/config/issues.ts';
import type { Contributed } from '../kernel/contributions.ts';
import { policyOf } from '../kernel/intake/doors.ts';
import { verbatim } from '../kernel/message/untrusted.ts';
import type { Origins } from '../kernel/turns/origins.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { buildConversations, createBeginAnew, createCompactNow } from './build-conversations.ts';
import type { Foundations } from './foundations.ts';

export type CommandParts = Pick<
  Foundations,
  'live' | 'clock' | 'log' | 'store' | 'bus' | 'measuring'
> &
  Pick<CommandDeps, 'settings' | 'skills' | 'jobs' | 'helpers' | 'workflows'> & {
    readonly home: Home;
    readonly people: People;
    readonly desk: CommandDeps['spending'];
    readonly agent: BuiltAgent;
    readonly remembering: BuiltMemory;
    readonly modes: BuiltModes;
    readonly local: LocalModels;
    readonly deciding: Deciding;
    readonly origins: Origins;
    readonly channels: Pick<ChannelDirectory, 'get'>;
    readonly contributed: Pick<Contributed, 'status'>;
    models(): ModelRegistry;
    turnDefaults: CommandDeps['defaults'];
  };

/** For `/status`, while the file is wrong. */
export function configurationLines(live: LiveConfig): readonly string[] {
  const { problems } = live;
  if (problems.length === 0) return [];
  const words = problemLines(problems).map((line) => verbatim(live.redact(line)));
  const what = 'config.json cannot be used, the configuration before it stays in force';
  return [`Configuration: ${what}: ${words.join(', ')}`];
}

export function buildCommands(parts: CommandParts): CommandDeps {
  const { bus, live, log, agent, remembering, deciding, modes, local } = parts;
  const { settings, skills, jobs, helpers, workflows } = parts;
  return {
    ...{ bus, settings, skills, jobs, helpers, workflows, local },
    people: parts.people,
    spending: parts.desk,
    models: parts.models,
    modes: modes.desk,
    defaults: parts.turnDefaults,
    memory: { ...remembering.desk, reflect: deciding.reflect },
    status: parts.contributed.status,
    mediumOf: (channel) => policyOf(channel, live.config).medium,
    approvals: deciding.approvals,
    drafts: deciding.drafts,
    standing: deciding.standing,
    compacting: createCompactNow(agent, remembering, live),
    conversations: buildConversations(parts),
    resetSession: createBeginAnew({ agent, remembering, asks: deciding.asks }),
    undo: createUndo({ agent, bus, log, channel: parts.channels.get }),
    audit: parts.measuring.audit,
  };
}
