// Who wrote without being let in, and what they wrote, until somebody decides about them: on disk,
// bounded by person and in all, gone after a week. The decision itself is made elsewhere.

import { textWithAttachments } from '../../kernel/message/attachment.ts';
import { type InboundMessage, idsOf, type PersonSender } from '../../kernel/message/message.ts';
import { firstWords, shortName } from '../../kernel/message/untrusted.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, kind, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';

/** Of everything that is kept about people. */
export const PEOPLE_SCOPE = 'people';
const MAX_STRANGERS = 100;
const MAX_HELD_MESSAGES = 10;
/** Of one person's messages together. */
const MAX_HELD_CHARS = 50_000;
export const STRANGER_LIFETIME_MS = 7 * 86_400_000;
/** Digits of an epoch time in a key, so that keys sort by time. */
const TIME_DIGITS = 15;
const COUNT_DIGITS = 2;

export type Stranger = {
  readonly channel: string;
  readonly userId: string;
  /** Every id they were seen under. */
  readonly ids: readonly string[];
  readonly name: string;
  readonly excerpt: string;
  /** The message that began it. */
  readonly firstId: string;
  /** Epoch milliseconds of the first and of the newest message. */
  readonly at: number;
  readonly lastAt: number;
  readonly heldChars: number;
  readonly heldMessages: number;
  /** Messages beyond what is kept of one person. */
  readonly lostMessages: number;
  readonly announced: boolean;
  /** Of the code they were given. */
  readonly code?: { readonly hash: string; readonly expiresAt: number };
};

const STRANGER = rowShape<Stranger>({
  ...{ channel: text, userId: text, ids: texts, name: text, excerpt: text, firstId: text },
  ...{ at: number, lastAt: number, heldChars: number, heldMessages: number },
  ...{ lostMessages: number, announced: flag },
});
const HELD_MESSAGE = rowShape<InboundMessage>({
  ...{ id: text, chat: place, sender: kind, addressing: text, text, sentAt: number },
  receivedAt: number,
});

export type StrangersDeps = { readonly rows: OpenRows; readonly clock: Clock };

export interface Strangers {
  /** Keeps the message; undefined where too many strangers wait already. */
  hold(message: InboundMessage, sender: PersonSender): Promise<Stranger | undefined>;
  list(): Promise<readonly Stranger[]>;
  /** Changes what is known of somebody who still waits. */
  note(stranger: Stranger, change: Pick<Partial<Stranger>, 'announced' | 'code'>): Promise<void>;
  /** What they wrote, oldest first; each with the id it is kept under. */
  held(stranger: Stranger): Promise<readonly HeldMessage[]>;
  /** Deletes these messages, and the stranger once nothing of theirs is held. */
  forget(stranger: Stranger, held: readonly HeldMessage[]): Promise<void>;
  /** Deletes what is too old; returns how many rows. */
  expire(): Promise<number>;
}

export type HeldMessage = { readonly id: string; readonly message: InboundMessage };

export function createStrangers({ rows, clock }: StrangersDeps): Strangers {
  const strangers = rows({ ...jsonRows(STRANGER), scope: PEOPLE_SCOPE, prefix: 'stranger:' });
  const messages = rows({ ...jsonRows(HELD_MESSAGE), scope: PEOPLE_SCOPE, prefix: 'held:' });
  /** Two messages at once must not undo each other's count. */
  const lanes = createLanes();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('strangers', task);

  async function list(): Promise<readonly Stranger[]> {
    const all = await strangers.list();
    return all.filter(({ lastAt }) => clock.now() - lastAt < STRANGER_LIFETIME_MS);
  }

  async function known(channel: string, ids: readonly string[]): Promise<Stranger | undefined> {
    return (await list()).find((one) => one.channel === channel && sharesId(one, ids));
  }

  async function hold(message: InboundMessage, sender: PersonSender) {
    const { channel } = message.chat;
    const ids = idsOf(sender);
    const before = (await known(channel, ids)) ?? newcomer(message, sender, clock.now());
    if (before.lastAt === 0 && (await list()).length >= MAX_STRANGERS) return undefined;
    const kept = await messages.entries({ prefix: heldPrefix(before) });
    if (kept.some(([id]) => id.endsWith(`:${message.id}`))) return before;
    const chars = JSON.stringify(message).length;
    const fits = kept.length < MAX_HELD_MESSAGES && before.heldChars + chars <= MAX_HELD_CHARS;
    const id = `${heldPrefix(before)}${placeOf(clock.now(), kept)}:${message.id}`;
    return strangers.change(
      idOf(before),
      (now = before) => ({
        ...now,
        ids: [...new Set([...now.ids, ...ids])],
        lastAt: clock.now(),
        heldChars: now.heldChars + (fits ? chars : 0),
        heldMessages: kept.length + (fits ? 1 : 0),
        lostMessages: now.lostMessages + (fits ? 0 : 1),
      }),
      () => (fits ? [messages.write(id, message)] : []),
    );
  }

  async function held(stranger: Stranger): Promise<readonly HeldMessage[]> {
    const found = await messages.entries({ prefix: heldPrefix(stranger) });
    return found.map(([id, message]) => ({ id, message }));
  }

  return {
    hold: (message, sender) => oneByOne(() => hold(message, sender)),
    list,
    async note(stranger, change) {
      await strangers.change(idOf(stranger), (stored) => stored && { ...stored, ...change });
    },
    held,
    forget: (stranger, over) =>
      oneByOne(async () => {
        const ids = new Set(over.map(({ id }) => id));
        const isAll = (await held(stranger)).every(({ id }) => ids.has(id));
        await strangers.change(
          idOf(stranger),
          (stored) => (isAll ? 'remove' : stored && { ...stored }),
          () => [...ids].map((id) => messages.write(id, undefined)),
        );
      }),
    async expire() {
      const before = clock.now() - STRANGER_LIFETIME_MS;
      return (await strangers.expire(before)) + (await messages.expire(before));
    },
  };
}

function newcomer(message: InboundMessage, sender: PersonSender, at: number): Stranger {
  return {
    channel: message.chat.channel,
    userId: sender.id,
    ids: [],
    name: shortName(sender.name),
    excerpt: firstWords(textWithAttachments(message)),
    firstId: message.id,
    at,
    lastAt: 0,
    heldChars: 0,
    heldMessages: 0,
    lostMessages: 0,
    announced: false,
  };
}

export function sharesId(stranger: Pick<Stranger, 'ids'>, ids: readonly string[]): boolean {
  return ids.some((id) => stranger.ids.includes(id));
}

/** Sorts behind what is kept already, also within a millisecond. */
function placeOf(now: number, kept: readonly unknown[]): string {
  return `${now}`.padStart(TIME_DIGITS, '0') + `${kept.length}`.padStart(COUNT_DIGITS, '0');
}

const idOf = ({ channel, userId }: Stranger) => `${channel}:${userId}`;
const heldPrefix = ({ channel, userId }: Stranger) => `${channel}:${encodeURIComponent(userId)}:`;
