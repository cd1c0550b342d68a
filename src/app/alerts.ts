// Tells the owner what needs a person: on a channel that works, once an hour per text.

import { randomUUID } from 'node:crypto';
import type { MessageBus } from '../kernel/bus/bus.ts';
import { ALERT } from '../kernel/delivery/undelivered.ts';
import type { AccountName } from '../kernel/message/account.ts';
import { messageId } from '../kernel/message/ids.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { OwnerDoor } from './owner-door.ts';

const REPEAT_MS = 3_600_000;
const MAX_REMEMBERED = 50;

export type AlertDeps = {
  readonly bus: MessageBus;
  readonly ownerDoor: OwnerDoor;
  readonly clock: Clock;
  readonly log: Logger;
  isRunning(account: AccountName): boolean;
};

/**
 * `troubled`: the account that is in trouble and does not carry the text; undefined: none.
 * `about`: the account that the text is about, which carries it where the owner is reached there.
 */
export type Alert = (troubled: AccountName | undefined, text: string, about?: AccountName) => void;

export function createAlerts(deps: AlertDeps): Alert {
  const lastAt = new Map<string, number>();

  return (channel, text, about) => {
    const now = deps.clock.now();
    const key = `${channel}\n${text}`;
    if (now - (lastAt.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS) return;
    lastAt.delete(key);
    lastAt.set(key, now);
    for (const oldest of lastAt.keys()) {
      if (lastAt.size <= MAX_REMEMBERED) break;
      lastAt.delete(oldest);
    }
    deps.log.warn('owner alerted', { channel });
    deps.ownerDoor
      .notices((name) => name !== channel && deps.isRunning(name), about)
      .then((chat) =>
        deps.bus.send({
          id: messageId(`${ALERT}${randomUUID()}`),
          chat,
          markdown: channel === undefined ? text : `**${channel}:** ${text}`,
        }),
      )
      .catch((error) => deps.log.error('alert failed', { channel, error }));
  };
}
