// Notices when a door was down for long, or the gateway with all of them, and tells the owner in one
// line what came in meanwhile. What it knows is on disk, a minute old at most.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type AccountName, accountName } from '../../kernel/message/account.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { LATE_MS, saidAt, whenText } from '../../kernel/message/late.ts';
import { type InboundMessage, sessionOf } from '../../kernel/message/message.ts';
import { jsonRow, number, type RowShape, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';

/** After a door is back, what had waited comes in for so long. */
const SETTLE_MS = 2 * 60_000;
const MAX_CHATS = 1000;
const KEY = 'doors';

type Outage = {
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
  readonly messages: number;
  readonly chats: readonly SessionKey[];
};
type DoorLife = { readonly aliveAt: number; readonly outage?: Outage };

const DOORS: RowShape<readonly (readonly [string, DoorLife])[]> = z.array(
  z.tuple([
    text,
    rowShape<DoorLife>({
      aliveAt: number,
      outage: z
        .looseObject({ since: number, until: number, messages: number, chats: texts })
        .optional(),
    }),
  ]),
);

export type OutagesDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  /** Those that are on. */
  accounts(): readonly AccountName[];
  isRunning(account: AccountName): boolean;
  /** Of the owner; IANA, empty = the machine's. */
  timeZone(): string;
  tellOwner(text: string): void;
};

export interface Outages {
  /** A message was taken in. */
  arrived(message: InboundMessage): void;
  /** To be called every minute or so. */
  check(): Promise<void>;
}

export async function createOutages(deps: OutagesDeps): Promise<Outages> {
  const { state, clock, accounts, isRunning, timeZone, tellOwner } = deps;
  const stored = jsonRow((await state.get(KEY)) ?? '', DOORS);
  const doors = new Map<string, DoorLife>(stored);

  /** The door works now: was it away before? */
  function alive(account: string, now: number): DoorLife {
    const before = doors.get(account) ?? { aliveAt: now };
    const wasAway = now - before.aliveAt > LATE_MS;
    const { outage = wasAway ? newOutage(before.aliveAt, now) : undefined } = before;
    const door = { aliveAt: now, ...(outage === undefined ? {} : { outage }) };
    doors.set(account, door);
    return door;
  }

  function report() {
    const now = clock.now();
    const over = [...doors].flatMap(([account, { aliveAt, outage }]) => {
      if (outage === undefined || now - outage.until < SETTLE_MS) return [];
      doors.set(account, { aliveAt });
      return outage.messages === 0 ? [] : [{ account, outage }];
    });
    const [first] = over;
    if (first === undefined) return;
    const since = Math.min(...over.map(({ outage }) => outage.since));
    const counts = over.map(({ account, outage }) => `${account}: ${countText(outage)}`);
    const when = whenText(since, now, timeZone());
    tellOwner(
      `I heard nothing since ${when.replace(/^(at|on) /, '')}; meanwhile came ${counts.join('; ')}. ` +
        'Those of one chat are answered together.',
    );
  }

  return {
    arrived(message) {
      const account = accountName(message.chat);
      if (!accounts().includes(account)) return;
      const { aliveAt, outage } = alive(account, message.receivedAt);
      if (outage === undefined || saidAt(message) >= outage.until) return;
      const chats = [...new Set([...outage.chats, sessionOf(message)])].slice(0, MAX_CHATS);
      doors.set(account, { aliveAt, outage: { ...outage, messages: outage.messages + 1, chats } });
    },
    async check() {
      for (const account of accounts()) if (isRunning(account)) alive(account, clock.now());
      report();
      await state.set(KEY, JSON.stringify([...doors]));
    },
  };
}

const newOutage = (since: number, until: number): Outage => ({
  ...{ since, until },
  messages: 0,
  chats: [],
});

function countText({ messages, chats }: Outage): string {
  const several = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  return `${several(messages, 'message')} in ${several(chats.length, 'chat')}`;
}
