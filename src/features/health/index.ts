// Looks after the doors once a minute: what waits at one that is down goes to another one, and what
// came in after one was down is told.

import { z } from 'zod';
import { CONFIGURED_CHANNELS } from '../../channels/configured-channels.ts';
import { configuredAccounts } from '../../channels/index.ts';
import { chatsOf } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  type AccountName,
  accountName,
  messageId,
  type SessionKey,
} from '../../kernel/message/ids.ts';
import { LATE_MS, saidAt, whenText } from '../../kernel/message/late.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionOf,
} from '../../kernel/message/message.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { jsonRow, number, type RowShape, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';

const INTERVAL_MS = 60_000;

export async function install(kernel: Kernel): Promise<void> {
  const { live, store, bus, people, clock, log, channels, owners, add } = kernel;
  const { isRunning } = channels;
  const accounts = () =>
    configuredAccounts(live.config.channels)
      .filter(({ isEnabled }) => isEnabled)
      .map(({ name }) => name);
  const common = { clock, accounts, isRunning };
  const outages = await createOutages({
    ...common,
    state: store.scope('outages'),
    timeZone: () => live.config.sessions.timeZone,
    tellOwner: owners.tell,
  });
  const fallback = createFallback({ ...common, bus, persons: people.persons, log });
  add.arrival(outages.arrived);
  const configured = kernel.use(CONFIGURED_CHANNELS);
  add.routes(['POST /api/selftest'], async () =>
    (await import('./self-test.ts')).selfTestRoutes(kernel, configured),
  );
  add.task({
    name: 'channel watch',
    async run(signal) {
      while (!signal.aborted) {
        await outages.check();
        await fallback.check();
        await clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
      }
    },
  });
}

// When a door is down for long, what waits for a person there goes out on another door of theirs,
// once: the move is one transaction, and what may have arrived is never moved.

type FallbackDeps = {
  readonly bus: Pick<MessageBus, 'stranded' | 'divert'>;
  readonly persons: Pick<Persons, 'inChat'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Those that are on. */
  accounts(): readonly AccountName[];
  /** Whether an account, also one of our own doors, carries messages now. */
  isRunning(account: AccountName): boolean;
};

interface Fallback {
  /** To be called every minute or so. */
  check(): Promise<void>;
}

/** A question is good in the chat where it was asked. */
const NOT_HERE =
  'This cannot be answered here. `/approvals` shows here what waits for your approval.';

export function createFallback(deps: FallbackDeps): Fallback {
  const { bus, persons, clock, log, accounts, isRunning } = deps;
  /** Since when an account has been down, as far as this process saw it. */
  const downSince = new Map<AccountName, number>();

  async function otherChannel({ chat }: OutboundMessage): Promise<ChatRef | undefined> {
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
      const to = message.subject === undefined ? await otherChannel(message) : undefined;
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
      log.info('message moved to another channel', {
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

// Notices when a door was down for long, or the gateway with all of them, and tells the owner in one
// line what came in meanwhile. What it knows is on disk, a minute old at most.

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
type ChannelLife = { readonly aliveAt: number; readonly outage?: Outage };

const LOCAL_NAMES: RowShape<readonly (readonly [string, ChannelLife])[]> = z.array(
  z.tuple([
    text,
    rowShape<ChannelLife>({
      aliveAt: number,
      outage: z
        .looseObject({ since: number, until: number, messages: number, chats: texts })
        .optional(),
    }),
  ]),
);

type OutagesDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  /** Those that are on. */
  accounts(): readonly AccountName[];
  isRunning(account: AccountName): boolean;
  /** Of the owner; IANA, empty = the machine's. */
  timeZone(): string;
  tellOwner(text: string): void;
};

interface Outages {
  /** A message was taken in. */
  arrived(message: InboundMessage): void;
  /** To be called every minute or so. */
  check(): Promise<void>;
}

export async function createOutages(deps: OutagesDeps): Promise<Outages> {
  const { state, clock, accounts, isRunning, timeZone, tellOwner } = deps;
  const stored = jsonRow((await state.get(KEY)) ?? '', LOCAL_NAMES);
  const doors = new Map<string, ChannelLife>(stored);

  /** The door works now: was it away before? */
  function alive(account: string, now: number): ChannelLife {
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
      `I was offline since ${when.replace(/^(at|on) /, '')}. Meanwhile: ${counts.join('; ')}. ` +
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
