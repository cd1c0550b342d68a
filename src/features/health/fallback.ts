// When a door is down for long, what waits for a person there goes out on another door of theirs,
// once: the move is one transaction, and what may have arrived is never moved.

import { chatsOf } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import { type AccountName, accountName } from '../../kernel/message/account.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { LATE_MS } from '../../kernel/message/late.ts';
import type { ChatRef, OutboundMessage } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Persons } from '../people/persons.ts';

export type FallbackDeps = {
  readonly bus: Pick<MessageBus, 'stranded' | 'divert'>;
  readonly persons: Pick<Persons, 'inChat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Those that are on. */
  accounts(): readonly AccountName[];
  /** Whether an account, also one of our own doors, carries messages now. */
  isRunning(account: AccountName): boolean;
};

export interface Fallback {
  /** To be called every minute or so. */
  check(): Promise<void>;
}

/** A question is good in the chat where it was asked. */
const NOT_HERE = 'This cannot be answered here. `/approvals` asks here what waits for your yes.';

export function createFallback(deps: FallbackDeps): Fallback {
  const { bus, persons, clock, log, accounts, isRunning } = deps;
  /** Since when an account has been down, as far as this process saw it. */
  const downSince = new Map<AccountName, number>();

  async function otherDoor({ chat }: OutboundMessage): Promise<ChatRef | undefined> {
    const person = await persons.inChat(chat);
    if (person === undefined || person.role === undefined || person.role === 'blocked') {
      return undefined;
    }
    const down = accountName(chat);
    return chatsOf(person).find(
      (other) => accountName(other) !== down && isRunning(accountName(other)),
    );
  }

  async function rescue(account: AccountName, since: number) {
    for (const message of await bus.stranded(account, since)) {
      // A letter goes the way an owner was shown.
      const to = message.subject === undefined ? await otherDoor(message) : undefined;
      if (to === undefined) continue;
      const { finalizes: _draft, replyTo: _question, choices, ...rest } = message;
      const note = choices === undefined ? '' : `\n\n${NOT_HERE}`;
      const moved = {
        ...rest,
        id: messageId(`${message.id}/moved`),
        chat: to,
        markdown: `Could not reach you on ${account}:\n\n${message.markdown}${note}`,
      };
      const result = await bus.divert(message.id, moved);
      log.info('message moved to another door', {
        channel: account,
        to: accountName(to),
        id: message.id,
        result,
      });
    }
  }

  return {
    async check() {
      const now = clock.now();
      for (const account of accounts()) {
        const since = downSince.get(account) ?? now;
        if (isRunning(account)) downSince.delete(account);
        else downSince.set(account, since);
        if (!isRunning(account) && now - since > LATE_MS) await rescue(account, since);
      }
    },
  };
}
