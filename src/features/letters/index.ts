// Installs letters: texts of the agent for other people, sent or first shown to an owner.

import { configuredAccounts } from '../../channels/index.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { POSTING } from '../../kernel/guards.ts';
import { whereNew } from '../../kernel/intake/receive.ts';
import { type AccountName, accountName } from '../../kernel/message/ids.ts';
import { createMinuteText, readHours } from '../../lib/time/zone-time.ts';
import { STANDING } from '../approvals/index.ts';
import { approvalCommands } from './approval-commands.ts';
import { openDraftRows } from './draft-rows.ts';
import { createDrafts, createTargets } from './drafts.ts';
import { createSendEmail } from './letters.ts';

export function install(kernel: Kernel): void {
  const { live, clock, log, bus, store, questions, owners, channels, people, mediumOf } = kernel;
  const standing = kernel.use(STANDING);
  const minuteText = createMinuteText();
  const minuteIn = (timeZone: string) => {
    const [hour = 0, minute = 0] = minuteText(clock.now(), timeZone)
      .slice(-5)
      .split(':')
      .map(Number);
    return hour * 60 + minute;
  };
  const isChat = (account: AccountName) => mediumOf(account) === 'chat';
  const drafts = createDrafts({
    ...{ bus, questions, standing, clock, log, ownerChat: owners.askChat },
    hasWrittenTo: (chat) => store.hasWrittenTo(chat),
    rows: openDraftRows(kernel.rows),
    targets: createTargets({
      persons: people.persons,
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
  kernel.add.answers('draft', drafts.handler, 'letter');
  kernel.add.personalData(drafts);
  kernel.add.intake({
    name: 'letter text',
    // Runs before the message is stored, so that it is repeated after a crash.
    async decide(message, verdict) {
      const role = verdict.kind === 'admit' ? verdict.role : undefined;
      const isCommand = kernel.commands.find(message.text) !== undefined;
      if (role === undefined || isCommand) return undefined;
      const before = await drafts.taking(message, role);
      if (before === undefined) return undefined;
      const entry = { kind: 'record', message, gate: 'new text of a draft' } as const;
      return whereNew(bus, { entry, counts: { role, as: 'command' }, before });
    },
  });
  const sendEmail = createSendEmail();
  kernel.add.tools(() => [sendEmail]);
  kernel.provide(POSTING, drafts.post);
  kernel.add.command(
    ...approvalCommands({
      ...{ questions, standing, mediumOf },
      persons: people.persons,
    }),
  );
}
