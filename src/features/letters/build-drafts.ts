// Builds what becomes of texts for somebody else.

import { configuredAccounts } from '../../channels/index.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { BusStore } from '../../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import { type AccountName, accountName } from '../../kernel/message/account.ts';
import type { Owners } from '../../kernel/owners.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import type { Standing } from '../approvals/standing.ts';
import type { Persons } from '../people/persons.ts';
import { openDraftRows } from './draft-rows.ts';
import { createDrafts, createTargets, type Drafts } from './drafts.ts';
import { readHours } from './rules/letter.ts';

export type DraftParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rows: OpenRows;
  readonly store: Pick<BusStore, 'hasWrittenTo'>;
  readonly bus: MessageBus;
  readonly persons: Persons;
  readonly questions: Questions;
  readonly standing: Standing;
  readonly owners: Pick<Owners, 'askChat'>;
  readonly channels: Pick<ChannelDirectory, 'isThere'>;
  readonly add: Contributions;
};

export function buildDrafts(parts: DraftParts): Drafts {
  const { live, clock, log, store, bus, persons, questions, standing, owners, channels } = parts;
  const minuteText = createMinuteText();
  const minuteIn = (timeZone: string) => {
    const [hour = 0, minute = 0] = minuteText(clock.now(), timeZone)
      .slice(-5)
      .split(':')
      .map(Number);
    return hour * 60 + minute;
  };
  const isChat = (account: AccountName) => policyOf(account, live.config).medium === 'chat';
  const drafts = createDrafts({
    ...{ bus, questions, standing, clock, log, ownerChat: owners.askChat },
    hasWrittenTo: (chat) => store.hasWrittenTo(chat),
    rows: openDraftRows(parts.rows),
    targets: createTargets({
      persons,
      isReached: (chat) => channels.isThere(accountName(chat)) && isChat(accountName(chat)),
      mailboxes: () =>
        configuredAccounts(live.config.channels)
          .filter(({ isEnabled }) => isEnabled)
          .flatMap(({ channel, account, definition, config }) => {
            const addresses = definition.addresses?.(config);
            return addresses === undefined ? [] : [{ channel, account, addresses }];
          }),
    }),
    policy(kind, { person }) {
      const { email, chats, hours } = live.config.tools.send;
      return {
        policy: kind === 'mail' ? email : chats,
        hours: readHours(hours) ?? { from: 0, to: 0 },
        minute: minuteIn(person.timeZone ?? live.config.sessions.timeZone),
      };
    },
    redact: (text) => live.redact(text),
  });
  parts.add.answers('draft', drafts.handler, 'letter');
  parts.add.personalData(drafts);
  return drafts;
}
