// Hands messages over to the bus and only then lets go of them. A chat whose queue is full keeps its
// messages, in order, and does not hold up the others.

import type { InboundEntry } from '../../bus/bus.ts';
import { BusFullError } from '../../core/errors.ts';
import type { ChannelHost } from '../channel.ts';

/** One row of the ledger as it leaves; without an entry there is nothing to store. */
export type Parcel = { readonly arrival: string; readonly entry?: InboundEntry };

type HandOverDeps = {
  readonly host: Pick<ChannelHost, 'receive'>;
  remove(arrivals: readonly string[]): Promise<void>;
};

const BATCH = 100;

/**
 * `full`: chats that have no room, of which nothing is tried; those found so are added.
 * @returns the parcels that were let go.
 */
export async function handOver<P extends Parcel>(
  parcels: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const gone: P[] = [];
  for (let start = 0; start < parcels.length; start += BATCH) {
    const batch = parcels.slice(start, start + BATCH).filter((one) => !full.has(chatOf(one)));
    const taken = (await isTaken(batch, deps)) ? batch : await takenByChat(batch, full, deps);
    await deps.remove(taken.map(({ arrival }) => arrival));
    gone.push(...taken);
  }
  return gone;
}

const chatOf = ({ entry }: Parcel) => entry?.message.chat.chat ?? '';

async function takenByChat<P extends Parcel>(
  batch: readonly P[],
  full: Set<string>,
  deps: HandOverDeps,
): Promise<readonly P[]> {
  const taken: P[] = [];
  for (const [chat, parcels] of Map.groupBy(batch, chatOf)) {
    if (await isTaken(parcels, deps)) taken.push(...parcels);
    else full.add(chat);
  }
  return taken;
}

async function isTaken(batch: readonly Parcel[], { host }: HandOverDeps): Promise<boolean> {
  const entries = batch.flatMap(({ entry }) => entry ?? []);
  if (entries.length === 0) return true;
  try {
    await host.receive(entries);
    return true;
  } catch (error) {
    if (error instanceof BusFullError) return false;
    throw error;
  }
}
