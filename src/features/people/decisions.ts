// What is decided about people: let in, answered once, blocked. The same for the owner's chat and the
// command line, with or without a gateway beside it; each step may be repeated after a crash.

import type { AdmittedRole, Role } from '../../kernel/access/admission.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { holdsCode, type Pairing } from './pairing.ts';
import { type Stranger, type Strangers, sharesId } from './strangers.ts';

/** Somebody who waits, or about whom something was decided before. */
export type Subject = {
  readonly channel: string;
  readonly userId: string;
  readonly ids: readonly string[];
  readonly name: string;
  readonly role: Role | undefined;
  readonly waiting: Stranger | undefined;
};

export type DecisionsDeps = {
  readonly pairing: Pairing;
  readonly strangers: Strangers;
  readonly now: () => number;
  /** Puts held messages into the queue; one that is there already changes nothing. */
  release(messages: readonly InboundMessage[]): Promise<void>;
};

export interface Decisions {
  /** Whom an id or a stranger's code means; `channel` undefined: on any. */
  find(typed: string, channel: string | undefined): Promise<readonly Subject[]>;
  /** Lets them in and queues what they wrote; returns how many messages. */
  allow(who: Pick<Subject, 'channel' | 'userId' | 'name'>, role: AdmittedRole): Promise<number>;
  /** Queues what they wrote and lets them in no further. */
  allowOnce(stranger: Stranger): Promise<number>;
  block(who: Pick<Subject, 'channel' | 'ids' | 'name'>): Promise<void>;
  /** Leaves what they wrote to the owner, unanswered; nothing is decided about them. */
  drop(stranger: Stranger): Promise<void>;
  /** Queues what somebody wrote before they were let in by other means; returns how many. */
  answerHeld(channel: string, ids: readonly string[]): Promise<number>;
}

export function createDecisions({ pairing, strangers, now, release }: DecisionsDeps): Decisions {
  async function answer(stranger: Stranger): Promise<number> {
    const held = await strangers.held(stranger);
    if (held.length > 0) await release(held.map(({ message }) => message));
    await strangers.forget(stranger, held);
    return held.length;
  }

  async function drop(stranger: Stranger): Promise<void> {
    await strangers.forget(stranger, await strangers.held(stranger));
  }

  async function waitingAs(channel: string, ids: readonly string[]) {
    return (await strangers.list()).filter((one) => one.channel === channel && sharesId(one, ids));
  }

  async function answerHeld(channel: string, ids: readonly string[]): Promise<number> {
    let answered = 0;
    for (const stranger of await waitingAs(channel, ids)) answered += await answer(stranger);
    return answered;
  }

  return {
    async find(typed, channel) {
      const id = typed.toLowerCase();
      const isMeant = (door: string) => channel === undefined || channel === door;
      const waiting = (await strangers.list()).filter(
        (one) =>
          isMeant(one.channel) &&
          (one.ids.some((other) => other.toLowerCase() === id) || holdsCode(one, typed, now())),
      );
      const { approved } = await pairing.list();
      const decided = approved.filter(
        (one) => isMeant(one.channel) && one.userId.toLowerCase() === id,
      );
      const isWaiting = (one: { readonly channel: string; readonly userId: string }) =>
        waiting.some(({ channel: door, ids }) => door === one.channel && ids.includes(one.userId));
      return [
        ...waiting.map((one): Subject => ({ ...one, role: undefined, waiting: one })),
        ...decided
          .filter((one) => !isWaiting(one))
          .map((one): Subject => ({ ...one, ids: [one.userId], waiting: undefined })),
      ];
    },
    async allow({ channel, userId, name }, role) {
      await pairing.approve({ channel, userId, name }, role);
      return answerHeld(channel, [userId]);
    },
    allowOnce: answer,
    drop,
    async block({ channel, ids, name }) {
      await pairing.block({ channel, ids, name });
      for (const stranger of await waitingAs(channel, ids)) {
        await drop(stranger);
      }
    },
    answerHeld,
  };
}
