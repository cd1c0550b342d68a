// Watches the channels once a minute: diverts waiting messages from a channel that is down to
// another one, and reports what arrived after an outage.

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
import { readOnce } from '../../lib/async.ts';
import { jsonRow, number, type RowShape, rowShape, text, texts } from '../../lib/json/json.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { UPDATES } from '../update/index.ts';

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
  const history = readOnce(async () => {
    const { createChannelHistory } = await import('./channel-history.ts');
    const kept = await createChannelHistory(store.scope('outages'), clock);
    await kept.look(configured.channels(), await bus.stats());
    return kept;
  });
  const since = clock.now();
  add.routes(
    [
      'GET /api/v1/operations/events',
      'POST /api/v1/dead/retry',
      'POST /api/v1/dead/drop',
      'POST /api/v1/doctor',
      'POST /api/v1/doctor/fix',
      'GET /api/v1/audit',
      'POST /api/v1/audit/verify',
      'GET /api/v1/logs/events',
    ],
    async () =>
      (await import('./operations-routes.ts')).operationsRoutes({
        ...{ kernel, configured, since, updates: kernel.use(UPDATES) },
        history: await history(),
      }),
  );
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
        if (signal.aborted) return;
        await (await history()).look(configured.channels(), await bus.stats());
      }
    },
  });
}

// When a channel is down for long, the messages that wait for a person there move to another
// channel of that person, once. The move is one transaction; a message that may have been delivered
// is never moved.

type FallbackDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly bus: Pick<MessageBus, 'stranded' | 'divert'>;
  readonly persons: Pick<Persons, 'inChat'>;
  /** The enabled accounts. */
  accounts(): readonly AccountName[];
  /** Whether an account, also one of a local channel, delivers messages now. */
  isRunning(account: AccountName): boolean;
};

/** A question can only be answered in the chat where it was asked. */
const NOT_HERE = t`This cannot be answered here. \`/approvals\` shows here what waits for your approval.`;

export function createFallback(deps: FallbackDeps) {
  const { bus, persons, clock, log, accounts, isRunning } = deps;
  /** Start of each outage, as seen by this process. */
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
      // A letter goes only to the recipients and channel that the owner approved.
      const to = message.subject === undefined ? await otherChannel(message) : undefined;
      if (to === undefined) continue;
      const { finalizes: _draft, replyTo: _question, choices, ...rest } = message;
      const note = choices === undefined ? '' : `\n\n${NOT_HERE}`;
      const moved = {
        ...rest,
        id: messageId(`${message.id}/moved`),
        chat: to,
        markdown: t`Could not reach you on ${account}:\n\n${message.markdown}${note}`,
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
    /** Called about once a minute. */
    async check(): Promise<void> {
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

// Detects outages of a channel or of the whole gateway, and reports to the owner in one line what
// arrived meanwhile. The state is on the disk, at most a minute old.

/** After an outage, messages that waited arrive within this time. */
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
  /** The enabled accounts. */
  accounts(): readonly AccountName[];
  isRunning(account: AccountName): boolean;
  /** Of the owner; IANA, empty = the machine's. */
  timeZone(): string;
  tellOwner(text: string): void;
};

export async function createOutages(deps: OutagesDeps) {
  const { state, clock, accounts, isRunning, timeZone, tellOwner } = deps;
  const stored = jsonRow(await state.get(KEY), LOCAL_NAMES);
  const doors = new Map<string, ChannelLife>(stored);

  /** Records that the channel works, and whether an outage ended. */
  function alive(account: string, now: number): ChannelLife {
    const before = doors.get(account) ?? { aliveAt: now };
    const wasAway = now - before.aliveAt > LATE_MS;
    const { outage = wasAway ? newOutage(before.aliveAt, now) : undefined } = before;
    const life = { aliveAt: now, ...(outage === undefined ? {} : { outage }) };
    doors.set(account, life);
    return life;
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
      t`I was offline since ${when.replace(/^(at|on) /, '')}. Meanwhile: ${counts.join('; ')}. ` +
        t`Those of one chat are answered together.`,
    );
  }

  return {
    /** Counts a received message. */
    arrived(message: InboundMessage): void {
      const account = accountName(message.chat);
      if (!accounts().includes(account)) return;
      const { aliveAt, outage } = alive(account, message.receivedAt);
      if (outage === undefined || saidAt(message) >= outage.until) return;
      const chats = [...new Set([...outage.chats, sessionOf(message)])].slice(0, MAX_CHATS);
      doors.set(account, { aliveAt, outage: { ...outage, messages: outage.messages + 1, chats } });
    },
    /** Called about once a minute. */
    async check(): Promise<void> {
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
  const { length } = chats;
  const inChats = ngettext(msgid`in ${length} chat`, `in ${length} chats`, length);
  return ngettext(
    msgid`${messages} message ${inChats}`,
    `${messages} messages ${inChats}`,
    messages,
  );
}
