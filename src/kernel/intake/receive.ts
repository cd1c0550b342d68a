// The way in: every message a channel hands over passes the gate (gate.ts), becomes durable together with
// the channel's cursor, and only then may the channel acknowledge it.

import { createHash } from 'node:crypto';
import type { ShowOutcome } from '../../channels/channel.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, jsonRow, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import type { AcceptResult, ChannelCursor, InboundEntry } from '../bus/bus.ts';
import type { KeyValueStore, StateStore } from '../bus/store/store.ts';
import { type AccountName, accountOf } from '../message/account.ts';
import { messageId } from '../message/ids.ts';
import type { InboundMessage, OutboundDraft } from '../message/message.ts';
import type { FairUse, Weighed } from './fair-use.ts';
import { createGate, type GateDeps } from './gate.ts';
import type { Gated, GroupIntake } from './group-intake.ts';
import type { Judge } from './judge.ts';

export type ReceiveDeps = Omit<GateDeps, 'reply'> & {
  readonly groups: GroupIntake;
  readonly fairUse: FairUse;
  /** A message was taken in. */
  arrived(message: InboundMessage): void;
};

const WENT_WRONG = 'Something went wrong with that. Please try it again.';

type AcceptOptions = { readonly cursor?: ChannelCursor };
type ReceiveOptions = AcceptOptions & { readonly pressed?: ShowOutcome };

export interface Receiver {
  /** @throws BusFullError: nothing was stored. */
  receive(batch: readonly InboundEntry[], options?: ReceiveOptions): Promise<void>;
}

export function createReceiver(deps: ReceiveDeps): Receiver {
  const { bus, people, log } = deps;

  async function reply(message: InboundMessage, markdown: string) {
    const draft: OutboundDraft = { chat: message.chat, markdown, replyTo: message.id };
    await bus.send({ ...draft, id: messageId(`${message.id}/reply`) });
  }

  const gate = createGate({ ...deps, reply });

  /** The counts are stored with the messages, and taken back with them. */
  async function store({ batch, store: storeCounts, settle }: Weighed, options: AcceptOptions) {
    let results: readonly AcceptResult[] = [];
    try {
      for (const item of batch) await item.before?.();
      const gated = await deps.groups.withTalk(await routed(batch));
      const entries = gated.map(({ entry }) => entry);
      [results] = await Promise.all([bus.accept(entries, options), storeCounts()]);
      return gated.filter((_item, index) => results[index] === 'accepted');
    } finally {
      settle(results);
    }
  }

  /** In order, behind the gate: what a command of the batch changed holds for those behind it. */
  async function routed(gated: readonly Gated[]): Promise<readonly Gated[]> {
    const result: Gated[] = [];
    for (const item of gated) {
      const message = await people.routes.route(item.entry.message);
      result.push({ ...item, entry: { ...item.entry, message } });
    }
    return result;
  }

  /** It is stored and never comes again: what fails is said, and keeps nothing from the others. */
  async function followed({ entry: { message }, afterwards }: Gated, show?: ShowOutcome) {
    try {
      await afterwards?.(show);
    } catch (error) {
      log.error('message not dealt with', { messageId: message.id, error });
      if (message.addressing !== 'direct') return;
      await reply(message, WENT_WRONG).catch((unsaid) => log.warn('not said', { error: unsaid }));
    }
  }

  return {
    async receive(batch, { pressed: show, ...options } = {}) {
      const weighed = await deps.fairUse.weigh(await Promise.all(batch.map(gate)));
      for (const item of await store(weighed, options)) {
        if (item.entry.kind === 'queue') deps.arrived(item.entry.message);
        await followed(item, show);
      }
    },
  };
}

// What came to several accounts of a channel is answered by one: the first in which its sender is let
// in. Which one that is, is on disk before anything is answered.

/** A copy that comes later than that is answered once more. */
const KEEP_MS = 30 * 86_400_000;
const SWEEP_MS = 86_400_000;

type Holder = { readonly account: AccountName; readonly isLetIn: boolean };

const HOLDER = rowShape<Holder>({ account: text, isLetIn: flag });

export type SharedArrivalsDeps = {
  readonly state: StateStore;
  readonly judge: Judge;
  readonly clock: Clock;
  /** Whether the channel has several accounts. */
  hasSeveral(channel: string): boolean;
};

/** The account that answers the message, of which `key` names every copy. */
export type SharedArrivals = (
  account: AccountName,
  key: string,
  message: InboundMessage,
) => Promise<AccountName>;

export function createSharedArrivals(deps: SharedArrivalsDeps): SharedArrivals {
  const lanes = createLanes();
  let sweptAt = Number.NEGATIVE_INFINITY;

  async function sweep(rows: KeyValueStore) {
    const now = deps.clock.now();
    if (now - sweptAt < SWEEP_MS) return;
    sweptAt = now;
    await rows.expire('', now - KEEP_MS);
  }

  async function holderOf(own: AccountName, key: string, message: InboundMessage) {
    const rows = deps.state.scope(`arrivals:${accountOf(own).channel}`);
    const row = createHash('sha256').update(key).digest('hex');
    const held = jsonRow((await rows.get(row)) ?? '', HOLDER);
    if (held?.account === own) return own;
    const isLetIn = withoutCode(await deps.judge(message)).kind === 'admit';
    if (held !== undefined && (held.isLetIn || !isLetIn)) return held.account;
    const mine: Holder = { account: own, isLetIn };
    await rows.set(row, JSON.stringify(mine));
    await sweep(rows);
    return own;
  }

  return async (account, key, message) => {
    const { channel } = accountOf(account);
    if (!deps.hasSeveral(channel)) return account;
    return lanes.run(`${channel}\n${key}`, () => holderOf(account, key, message));
  };
}
