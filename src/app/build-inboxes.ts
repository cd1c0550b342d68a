// The mailboxes that can be looked into just now.

import { configuredAccounts } from '../channels/accounts.ts';
import type { Channel } from '../channels/channel.ts';
import type { AccountName } from '../core/account.ts';
import type { OpenInbox } from '../tools/check-inbox.ts';
import type { LiveConfig } from './live-config.ts';

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
