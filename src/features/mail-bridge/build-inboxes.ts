// The mailboxes that can be looked into just now.

import type { Channel } from '../../channels/channel.ts';
import { configuredAccounts } from '../../channels/index.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { AccountName } from '../../kernel/message/account.ts';
import type { OpenInbox } from './check-inbox.ts';

export function openInboxes(
  live: LiveConfig,
  channel: (name: AccountName) => Channel | undefined,
): readonly OpenInbox[] {
  return configuredAccounts(live.config.channels).flatMap(({ name, isEnabled }) => {
    const inbox = isEnabled ? channel(name)?.inbox : undefined;
    if (inbox === undefined) return [];
    return [
      {
        name,
        find: (question, signal) => inbox.find(question, signal),
        read: (id, signal) => inbox.read(id, signal),
      },
    ];
  });
}
