// Installs letters: texts of the agent for other people, sent or first shown to an owner.

import { configuredAccounts } from '../../channels/index.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { POSTING } from '../../kernel/guards.ts';
import { maxFileBytes } from '../../kernel/media/files.ts';
import { type AccountName, accountName } from '../../kernel/message/ids.ts';
import { jsonRows, MARKS } from '../../kernel/rows.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { object } from '../../lib/json/json.ts';
import { createMinuteText, readHours } from '../../lib/time/zone-time.ts';
import { STANDING } from '../approvals/index.ts';
import { approvalCommands } from './approval-commands.ts';
import { createDrafts, createTargets } from './drafts.ts';
import { createSendEmail, type Draft } from './letters.ts';

export async function install(kernel: Kernel): Promise<void> {
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
  const mailboxes = () =>
    configuredAccounts(live.config.channels)
      .filter(({ isEnabled }) => isEnabled)
      .flatMap(({ channel, account, definition, config }) => {
        const addresses = definition.addresses?.(config);
        return addresses === undefined ? [] : [{ channel, account, addresses }];
      });
  const drafts = createDrafts({
    ...{ bus, questions, standing, clock, log, ownerChat: owners.askChat },
    hasWrittenTo: (chat) => store.hasWrittenTo(chat),
    written: kernel.rows({ ...MARKS, scope: 'drafts', prefix: 'written:' }),
    targets: createTargets({
      persons: people.persons,
      isReached: (chat) => channels.isThere(accountName(chat)) && isChat(accountName(chat)),
      mailboxes,
    }),
    policy(kind, { person }) {
      const { email, chats, hours } = live.config.tools.send;
      return {
        policy: kind === 'mail' ? email : chats,
        hours: readHours(hours) ?? { from: 0, to: 0 },
        minute: minuteIn(person.timeZone ?? live.config.sessions.timeZone),
      };
    },
    redact: live.redact,
  });
  kernel.add.answers('draft', drafts.handler, 'letter');
  await takeOver(kernel);
  const limitOf = maxFileBytes(kernel);
  const sendEmail = createSendEmail({
    ...{ files: createGuardedFiles(), media: kernel.media },
    limit: () => {
      const limits = mailboxes().flatMap((mailbox) => limitOf(accountName(mailbox)) ?? []);
      return limits.toSorted((one, other) => one.eachBytes - other.eachBytes)[0];
    },
  });
  kernel.add.tools(() => [sendEmail]);
  kernel.provide(POSTING, drafts.post);
  kernel.add.command(
    ...approvalCommands({
      ...{ questions, standing, mediumOf },
      ...{ persons: people.persons, peopleRows: people.peopleRows },
    }),
  );
}

/** Of earlier versions: a letter had a row of its own, and a question for each of its texts. */
type EarlierDraft = Draft & {
  readonly id: string;
  readonly version: number;
  readonly state: string;
  readonly editedBy?: string;
};

async function takeOver({ rows, questions }: Kernel): Promise<void> {
  const earlier = rows({ ...jsonRows<EarlierDraft>(object), scope: 'drafts', prefix: 'draft:' });
  await questions.adopt(earlier, ({ id, version, state, editedBy, ...draft }) => {
    const isWaiting = state === 'open' || state === 'editing';
    return {
      id: `draft/${id}/${version}`,
      ...{ subject: `draft:${id}`, session: draft.turn.session },
      payload: { ...draft, isEdited: editedBy !== undefined },
      ...(state === 'editing' ? { hears: 'text' } : {}),
      outcome: isWaiting ? undefined : state,
    };
  });
}
