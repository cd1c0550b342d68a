// Builds what `/commands` work with: of every part what it has to say or lets be changed.

import type { BuiltAgent } from '../agent/build-agent.ts';
import type { Channel } from '../channels/channel.ts';
import type { Deciding } from '../features/approvals/build-decisions.ts';
import type { BuiltLocalModels } from '../features/local-models/build-local-models.ts';
import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { BuiltModes } from '../features/modes/build-modes.ts';
import type { People } from '../features/people/people.ts';
import { steadinessLines } from '../features/steadiness/rules/steady-view.ts';
import type { CommandDeps } from '../kernel/commands/command.ts';
import { createUndo } from '../kernel/commands/conversation-commands.ts';
import type { Home } from '../kernel/config/files/home.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { problemLines } from '../kernel/config/issues.ts';
import { policyOf } from '../kernel/intake/doors.ts';
import type { AccountName } from '../kernel/message/account.ts';
import { verbatim } from '../kernel/message/stranger-words.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { buildConversations, createBeginAnew, createCompactNow } from './build-conversations.ts';
import type { buildOwnTurns } from './build-own-turns.ts';
import type { Foundations } from './foundations.ts';

export type CommandParts = Pick<
  Foundations,
  'live' | 'clock' | 'log' | 'store' | 'bus' | 'measuring'
> & {
  readonly home: Home;
  readonly settings: CommandDeps['settings'];
  readonly people: People;
  readonly desk: CommandDeps['spending'];
  readonly skills: CommandDeps['skills'];
  readonly agent: BuiltAgent;
  readonly remembering: BuiltMemory;
  readonly own: ReturnType<typeof buildOwnTurns>;
  readonly modes: BuiltModes;
  readonly local: BuiltLocalModels;
  models(): ModelRegistry;
  jobs: CommandDeps['jobs'];
  turnDefaults: CommandDeps['defaults'];
  channelOf(name: AccountName): Channel | undefined;
  channelLines(): readonly string[];
  persons(): People['persons'];
  deciding(): Deciding;
};

/** While the file is wrong. */
function configurationLines(live: LiveConfig): readonly string[] {
  const { problems } = live;
  if (problems.length === 0) return [];
  const words = problemLines(problems).map((line) => verbatim(live.redact(line)));
  const what = 'config.json cannot be used, the configuration before it stays in force';
  return [`Configuration: ${what}: ${words.join(', ')}`];
}

export function buildCommands(parts: CommandParts): CommandDeps {
  const { bus, live, log, agent, remembering, deciding, own, modes, local } = parts;
  return {
    bus,
    settings: parts.settings,
    people: parts.people,
    spending: parts.desk,
    skills: parts.skills,
    jobs: parts.jobs,
    ...own.desks,
    models: parts.models,
    local: local.desk,
    modes: modes.desk,
    defaults: parts.turnDefaults,
    memory: { ...remembering.desk, reflect: (message) => deciding().reflect(message) },
    status: [
      modes.status,
      local.status,
      () => steadinessLines(live.config.agents),
      own.status,
      () => parts.channelLines(),
      () => configurationLines(live),
    ],
    mediumOf: (channel) => policyOf(channel, live.config).medium,
    approvals: {
      open: () => deciding().approvals.open(),
      askAgain: (chat) => deciding().approvals.askAgain(chat),
    },
    drafts: {
      open: () => deciding().drafts.open(),
      askAgain: (chat) => deciding().drafts.askAgain(chat),
    },
    standing: {
      list: () => deciding().standing.list(),
      takeBack: (typed) => deciding().standing.takeBack(typed),
    },
    compacting: createCompactNow(agent, remembering, live),
    conversations: buildConversations(parts),
    resetSession: createBeginAnew({ agent, remembering, asks: () => deciding().asks }),
    undo: createUndo({ agent, bus, log, channel: parts.channelOf }),
    audit: parts.measuring.audit,
  };
}
