// What came to several accounts of a channel is answered by one: the first in which its sender is let
// in. Which one that is, is on disk before anything is answered.

import { createHash } from 'node:crypto';
import { createLanes } from '../../lib/async.ts';
import { flag, jsonRow, rowShape, text } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import type { KeyValueStore, StateStore } from '../bus/store/store.ts';
import { type AccountName, accountOf } from '../message/account.ts';
import type { InboundMessage } from '../message/message.ts';
import type { Judge } from './judge.ts';

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
