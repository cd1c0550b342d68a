// What exists before the first feature: who people are, where owners are reached, what is asked of whom, and the
// registries that features contribute to.

import { randomBytes } from 'node:crypto';
import type { Foundations } from '../app/foundations.ts';
import { PAIRING_SCOPE } from '../app/state.ts';
import { buildPeople } from '../features/people/build-people.ts';
import { createKnownAs } from '../features/people/people.ts';
import { createPermits } from '../lib/async.ts';
import { createChannelDirectory } from './channels.ts';
import { createCommands } from './commands/commands.ts';
import { createRegistries } from './contributions.ts';
import { createSpentButtons } from './delivery/spent-buttons.ts';
import { policyOf } from './intake/doors.ts';
import { createJudge } from './intake/judge.ts';
import type { AccountName } from './message/account.ts';
import { createOwnerDoor, createOwners } from './owners.ts';
import { auditedHandlers } from './questions/audited-handlers.ts';
import { openQuestionRows } from './questions/question-rows.ts';
import { createQuestions } from './questions/questions.ts';
import { createOrigins } from './turns/origins.ts';
import { createSessionSettings } from './turns/session-settings.ts';

export type Kernel = ReturnType<typeof openKernel>;

export function openKernel(foundations: Foundations) {
  const { live, clock, log, store, rows, bus, measuring } = foundations;
  const registries = createRegistries();
  const { add, contributed } = registries;
  const channels = createChannelDirectory();
  const people = buildPeople(foundations);
  const { persons, pairing } = people;
  const policy = (account: AccountName) => policyOf(account, live.config);
  const judge = createJudge({ persons, policy });
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  const origins = createOrigins({
    ...{ judge, mediumOf, knownAs: createKnownAs(persons) },
    policies: () => live.config.tools,
  });
  const chosen = () => live.config.notices.channel;
  const door = createOwnerDoor({ state: store.scope(PAIRING_SCOPE), pairing, chosen });
  const isChat = (account: AccountName) => mediumOf(account) === 'chat';
  const owners = createOwners({ door, channels, bus, clock, log, isChat });
  const spent = { rows, bus, clock, log, channel: channels.get };
  const buttons = createSpentButtons(spent);
  const questions = createQuestions({
    ...{ rows: openQuestionRows(rows), bus, clock, log, randomBytes },
    handlers: () => auditedHandlers(contributed, measuring.audit),
    spendButtons: buttons.spend,
    hasButtons: (name) => channels.get(name)?.choices !== undefined,
  });
  const settings = createSessionSettings(store.scope('session-settings'));
  const commands = createCommands({ contributed, audit: measuring.audit });
  const permits = createPermits(live.defaults.maxConcurrentChats);
  const asking = { questions, buttons };
  const known = { people, judge, mediumOf, origins, owners, settings, commands, permits };
  return { ...foundations, registries, add, contributed, channels, ...known, ...asking };
}
