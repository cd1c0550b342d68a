// When a door is down for long, what waits for a person there goes out on another door of theirs,
// once: the move is one transaction, and what may have arrived is never moved.

import type { MessageBus } from '../bus/bus.ts';
import { type ChannelName, messageId } from '../core/ids.ts';
import { LATE_MS } from '../core/late.ts';
import type { ChatRef, OutboundMessage } from '../core/message.ts';
import { chatsOf } from '../core/person.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Persons } from './persons.ts';

export type FallbackDeps = {
  readonly bus: Pick<MessageBus, 'stranded' | 'divert'>;
  readonly persons: Pick<Persons, 'inChat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Channels that are on. */
  channels(): readonly ChannelName[];
  /** Whether a channel, also one of our own doors, carries messages now. */
  isRunning(channel: ChannelName): boolean;
};

export interface Fallback {
  /** To be called every minute or so. */
  check(): Promise<void>;
}

/** A question is good in the chat where it was asked. */
const NOT_HERE = 'This cannot be answered here. `/approvals` asks here what waits for your yes.';

export function createFallback(deps: FallbackDeps): Fallback {
  const { bus, persons, clock, log, channels, isRunning } = deps;
  /** Since when a channel has been down, as far as this process saw it. */
  const downSince = new Map<ChannelName, number>();

  async function otherDoor({ chat }: OutboundMessage): Promise<ChatRef | undefined> {
    const person = await persons.inChat(chat);
    if (person === undefined || person.role === undefined || person.role === 'blocked') {
      return undefined;
    }
    return chatsOf(person).find(({ channel }) => channel !== chat.channel && isRunning(channel));
  }

  async function rescue(channel: ChannelName, since: number) {
    for (const message of await bus.stranded(channel, since)) {
      // A letter goes the way an owner was shown.
      const to = message.subject === undefined ? await otherDoor(message) : undefined;
      if (to === undefined) continue;
      const { finalizes: _draft, replyTo: _question, choices, ...rest } = message;
      const note = choices === undefined ? '' : `\n\n${NOT_HERE}`;
      const moved = {
        ...rest,
        id: messageId(`${message.id}/moved`),
        chat: to,
        markdown: `Could not reach you on ${channel}:\n\n${message.markdown}${note}`,
      };
      const result = await bus.divert(message.id, moved);
      log.info('message moved to another door', {
        channel,
        to: to.channel,
        id: message.id,
        result,
      });
    }
  }

  return {
    async check() {
      const now = clock.now();
      for (const channel of channels()) {
        const since = downSince.get(channel) ?? now;
        if (isRunning(channel)) downSince.delete(channel);
        else downSince.set(channel, since);
        if (!isRunning(channel) && now - since > LATE_MS) await rescue(channel, since);
      }
    },
  };
}
