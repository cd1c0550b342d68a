// Counts the answered messages of people and groups, and stops what exceeds the limits: one notice,
// then silence. Counts are in memory and are stored in the transaction that stores the messages, so
// that neither a restart nor a message costs more for it; several processes count in the database.
// The rules are in kernel/message/message-limits.ts.

import { readOnce } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createLocalDays } from '../../lib/time/zone-time.ts';
import { type AdmissionPolicy, admit, type Verdict } from '../access/admission.ts';
import type { PersonLimits } from '../access/person.ts';
import type { AcceptResult, MessageBus } from '../bus/bus.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import type { LimitsConfig } from '../config/limits.ts';
import { accountName, messageId } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';
import {
  COMMAND_LIMITS,
  type Counted,
  type CountNames,
  type CountRow,
  CountRows,
  gateText,
  givenBack,
  groupLimits,
  groupNames,
  isSpent,
  joinedTallies,
  type MessageLimits,
  type Moment,
  NO_MESSAGES,
  namesOf,
  pauseNotice,
  personLimits,
  personNames,
  type Tally,
  taken,
  weigh,
} from '../message/message-limits.ts';
import type { KnownAs, Persons } from '../people/persons.ts';
import type { CountedAs, Gated } from './group-intake.ts';

type FairUseDeps = {
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly knownAs: KnownAs;
  /** Other processes count the same people. */
  readonly isShared?: boolean;
  settings(): { readonly limits: LimitsConfig; readonly timeZone: string };
};

/** A batch in which messages over the limit are only recorded. */
export type Weighed = {
  readonly batch: readonly Gated[];
  /** Stores the counts; call it synchronously with the bus's `accept`. */
  store(): Promise<void>;
  /** Reverts the count of messages that were not new. */
  settle(results: readonly AcceptResult[]): void;
};

export type FairUse = ReturnType<typeof createFairUse>;

/** What is counted for one message, each with its limits. */
type Account = {
  readonly whose: Counted;
  readonly row: CountRow<Tally>;
  readonly limits: MessageLimits;
};

/** The limits that an owner set for the author. */
type LimitsOf = ReadonlyMap<InboundMessage, PersonLimits>;

/** `undo` reverts the count of a message that turns out to be known already. */
type Judged = { readonly item: Gated; readonly undo?: (tallies: Tallies) => void };

type Tallies = CountRows<Tally>;

const PERSON = 'person ';
const COMMAND = 'command ';
const GROUP = 'group ';
/** Counts of past days are deleted from the store after this. */
const KEEP_MS = 2 * 86_400_000;

export function createFairUse(deps: FairUseDeps) {
  const { state, bus, clock, log, knownAs, isShared = false, settings } = deps;
  const stored = { state, prefix: '', fresh: NO_MESSAGES, join: joinedTallies };
  const tallies: Tallies = new CountRows(NO_MESSAGES, joinedTallies);
  const dayOf = createLocalDays();
  let sweptOn = '';

  const loaded = readOnce(async () => {
    const rows = await state.list('');
    const unread = rows.filter(({ value }) => tallies.read(value) === undefined);
    if (unread.length > 0) log.warn('counts not readable', { rows: unread.length });
  });

  /** At most once a day: drops people who have not written since. */
  function sweep() {
    const now = clock.now();
    const today = dayOf(now, settings().timeZone);
    if (sweptOn === today.day) return;
    sweptOn = today.day;
    for (const row of tallies.rows) if (isSpent(row.value, { now, today })) tallies.forget(row);
    state.expire('', now - KEEP_MS).catch((error) => log.warn('counts not deleted', { error }));
  }

  /** A person seen on a new channel is joined with their earlier record. */
  async function joinPersonChannels(tallies: Tallies, batch: readonly Gated[]): Promise<LimitsOf> {
    const counted = batch.filter(({ counts }) => counts !== undefined);
    const own = new Map<InboundMessage, PersonLimits>();
    await Promise.all(
      counted.map(async ({ entry: { message } }) => {
        const [first, ...others] = personNames(message);
        const known = await knownAs(message);
        const names: CountNames = [first, ...others, ...known.names];
        for (const prefix of [PERSON, COMMAND]) tallies.at(prefixed(prefix, names));
        if (known.limits !== undefined) own.set(message, known.limits);
      }),
    );
    return own;
  }

  function accountsOf(
    tallies: Tallies,
    message: InboundMessage,
    { role, as }: CountedAs,
    ownOf: LimitsOf,
  ): readonly Account[] {
    const { limits } = settings();
    const people = personNames(message);
    if (as === 'command') {
      const row = tallies.at(prefixed(COMMAND, people));
      return [{ whose: 'commands', row, limits: COMMAND_LIMITS }];
    }
    const own = tallies.at(prefixed(PERSON, people));
    const names = [...own.names].map((name) => name.slice(PERSON.length));
    const person: Account = {
      whose: 'person',
      row: own,
      limits: personLimits(message, role, limits, names, ownOf.get(message)),
    };
    const groups = groupNames(message);
    if (groups === undefined || role === 'owner') return [person];
    const row = tallies.at(prefixed(GROUP, groups));
    return [person, { whose: 'group', row, limits: groupLimits(groups, limits) }];
  }

  function tell(message: InboundMessage, text: string): () => Promise<void> {
    return async () => {
      const id = messageId(`${message.id}/reply`);
      await bus.send({ id, chat: message.chat, markdown: text, replyTo: message.id });
    };
  }

  function judge(
    tallies: Tallies,
    item: Gated,
    message: InboundMessage,
    counts: CountedAs,
    ownOf: LimitsOf,
    touched: Set<CountRow<Tally>>,
  ): Judged {
    const now = clock.now();
    const today = dayOf(now, settings().timeZone);
    const moment: Moment = { saidAt: Math.min(message.sentAt, now), now, today };
    const accounts = accountsOf(tallies, message, counts, ownOf);
    for (const { whose, row, limits } of accounts) {
      const verdict = weigh(row.value, moment, limits);
      if (verdict.kind === 'take') continue;
      const { pause, isNew } = verdict;
      const before = row.value.pause;
      if (isNew) row.value = { ...row.value, pause };
      touched.add(row);
      const gate = gateText(whose, pause);
      log.info('message refused', { messageId: message.id, reason: gate });
      const refused: Gated = { entry: { kind: 'record', message, gate } };
      if (!isNew) return { item: refused };
      const afterwards = tell(message, pauseNotice(whose, pause, limits, now));
      const names = namesOf(row);
      const undo = (current: Tallies) => {
        const again = current.at(names);
        again.value = withPause(again.value, before);
      };
      return { item: { ...refused, afterwards }, undo };
    }
    for (const { row, limits } of accounts) {
      row.value = taken(row.value, moment, limits);
      touched.add(row);
    }
    const names = accounts.map(({ row }) => namesOf(row));
    const undo = (current: Tallies) => {
      for (const each of names) {
        const row = current.at(each);
        row.value = givenBack(row.value, moment);
      }
    };
    return { item, undo };
  }

  function judgeAll(
    tallies: Tallies,
    batch: readonly Gated[],
    ownOf: LimitsOf,
    touched: Set<CountRow<Tally>>,
  ): readonly Judged[] {
    return batch.map((item) => {
      const { counts, entry } = item;
      if (counts === undefined) return { item };
      return judge(tallies, item, entry.message, counts, ownOf, touched);
    });
  }

  const undosOf = (weighed: readonly Judged[], results: readonly AcceptResult[]) =>
    weighed.flatMap(({ undo }, index) => (results[index] === 'accepted' ? [] : (undo ?? [])));

  /** Counted before the messages are stored: other processes count the same people. */
  async function weighTogether(batch: readonly Gated[]): Promise<Weighed> {
    const { changeCounts } = await import('./shared-counts.ts');
    const met: Tallies = new CountRows(NO_MESSAGES, joinedTallies);
    const ownOf = await joinPersonChannels(met, batch);
    for (const { counts, entry } of batch) {
      if (counts !== undefined) accountsOf(met, entry.message, counts, ownOf);
    }
    const names = met.rows.map(namesOf);
    const weighed = await changeCounts(stored, names, (rows) =>
      judgeAll(rows, batch, ownOf, new Set()),
    );
    return {
      batch: weighed.map(({ item }) => item),
      store: async () => undefined,
      settle(results) {
        const undos = undosOf(weighed, results);
        if (undos.length === 0) return;
        changeCounts(stored, names, (rows) => {
          for (const undo of undos) undo(rows);
        }).catch((error) => log.warn('counts not stored', { error }));
      },
    };
  }

  return {
    async weigh(batch: readonly Gated[]): Promise<Weighed> {
      sweep();
      if (isShared) return weighTogether(batch);
      await loaded();
      const ownOf = await joinPersonChannels(tallies, batch);
      const touched = new Set<CountRow<Tally>>();
      const weighed = judgeAll(tallies, batch, ownOf, touched);
      return {
        batch: weighed.map(({ item }) => item),
        async store() {
          if (touched.size === 0) return;
          // The messages matter more: a count that is not stored is only lost with the process.
          const { rows, written } = tallies.stored(touched);
          await state
            .setMany(rows)
            .then(written)
            .catch((error) => log.warn('counts not stored', { error }));
        },
        settle(results) {
          for (const undo of undosOf(weighed, results)) undo(tallies);
        },
      };
    },
  };
}

function prefixed(prefix: string, [first, ...others]: CountNames): CountNames {
  return [prefix + first, ...others.map((name) => prefix + name)];
}

function withPause({ pause: _ended, ...tally }: Tally, pause: Tally['pause']): Tally {
  return pause === undefined ? tally : { ...tally, pause };
}

// Collects what admission decides from: the current configuration and what was decided about the
// sender. kernel/access/admission.ts makes the decision.

type JudgeDeps = {
  readonly persons: Pick<Persons, 'roleIn'>;
  /** The configured part of admission, by account name. */
  policy(account: string): Omit<AdmissionPolicy, 'role'>;
};

/** The current verdict about a message. */
export type Judge = (message: InboundMessage) => Promise<Verdict>;

export function createJudge({ persons, policy }: JudgeDeps): Judge {
  return async (message) => {
    const role = await persons.roleIn(message);
    return admit(message, { ...policy(accountName(message.chat)), role });
  };
}
