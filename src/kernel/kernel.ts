// Opens what exists before the first feature: the foundations, who people are, where owners are reached, what is
// asked of whom, and the registries that features contribute to.

import { randomBytes } from 'node:crypto';
import { buildPeople } from '../features/people/open-people.ts';
import { createKnownAs } from '../features/people/people.ts';
import { createPermits } from '../lib/async.ts';
import { createChannelDirectory } from './channels.ts';
import { createCommands } from './commands/commands.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import { createRegistries } from './contributions.ts';
import { createSpentButtons } from './delivery/spent-buttons.ts';
import { createPorts, type Kernel, type Orders } from './feature.ts';
import { layFoundations } from './foundations.ts';
import type { GatewayOptions } from './gateway.ts';
import { PAIRING_SCOPE } from './home-state.ts';
import { policyOf } from './intake/doors.ts';
import { createJudge } from './intake/judge.ts';
import type { AccountName } from './message/account.ts';
import { createOwnerDoor, createOwners } from './owners.ts';
import { auditedHandlers } from './questions/audited-handlers.ts';
import { openQuestionRows } from './questions/question-rows.ts';
import { createQuestions } from './questions/questions.ts';
import { createOrigins } from './turns/origins.ts';
import { createSessionSettings } from './turns/session-settings.ts';

/** @throws StoreError */
export async function openKernel(
  live: LiveConfig,
  options: GatewayOptions,
  orders: Orders,
  resources: AsyncDisposableStack,
): Promise<Kernel> {
  const { add, contributed } = createRegistries();
  const foundations = await layFoundations(live, options, contributed, resources);
  const { clock, log, store, rows, bus, measuring } = foundations;
  const channels = createChannelDirectory();
  const people = buildPeople(foundations);
  const { persons, pairing } = people;
  const policy = (account: AccountName) => policyOf(account, live.config);
  const judge = createJudge({ persons, policy });
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  const policies = () => live.config.tools;
  const origins = createOrigins({ judge, mediumOf, knownAs: createKnownAs(persons), policies });
  const chosen = () => live.config.notices.channel;
  const door = createOwnerDoor({ state: store.scope(PAIRING_SCOPE), pairing, chosen });
  const isChat = (account: AccountName) => mediumOf(account) === 'chat';
  const owners = createOwners({ door, channels, bus, clock, log, isChat });
  const buttons = createSpentButtons({ rows, bus, clock, log, channel: channels.get });
  const questions = createQuestions({
    ...{ rows: openQuestionRows(rows), bus, clock, log, randomBytes },
    handlers: () => auditedHandlers(contributed, measuring.audit),
    spendButtons: buttons.spend,
    hasButtons: (name) => channels.get(name)?.choices !== undefined,
  });
  return {
    ...foundations,
    ...createPorts(),
    ...{
      orders,
      add,
      contributed,
      channels,
      people,
      judge,
      mediumOf,
      origins,
      owners,
      questions,
      buttons,
    },
    settings: createSessionSettings(store.scope('session-settings')),
    commands: createCommands({ contributed, audit: measuring.audit }),
    permits: createPermits(live.defaults.maxConcurrentChats),
  };
}
