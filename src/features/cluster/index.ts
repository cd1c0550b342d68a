// Keeps the cluster as it is configured now: built when it is switched on, emptied when it is switched off,
// and its peers and searches changed while it runs. An answer under way at a peer that is taken out ends there.

import type { Config } from '../../kernel/config/config.ts';
import { createChange } from '../../lib/async.ts';
import type { Peers } from '../../providers/local-site.ts';
import type { Cluster, ClusterParts } from './cluster.ts';

export { type ClusterService, clusterCommands } from './cluster-service.ts';

/** Nothing of it is loaded where it is off. @throws StoreError */
export async function clusterOf(parts: ClusterParts): Promise<Cluster | undefined> {
  if (!parts.live.config.cluster.enabled) return undefined;
  const { buildCluster } = await import('./cluster.ts');
  return buildCluster(parts);
}

export class ClusterKeeper {
  readonly #parts: ClusterParts;
  #built: Cluster | undefined;
  #settings: string;
  readonly #change = createChange();

  constructor(parts: ClusterParts, built: Cluster | undefined) {
    this.#parts = parts;
    this.#built = built;
    this.#settings = textOf(parts.live.config);
  }

  get current(): Cluster | undefined {
    return this.#built;
  }

  get peers(): Peers | undefined {
    return this.#built?.peers;
  }

  /** Takes up what is configured now; nothing where that is as before. @throws StoreError */
  async configured(): Promise<void> {
    const { config } = this.#parts.live;
    const settings = textOf(config);
    if (settings === this.#settings) return;
    const before = this.#built;
    if (!config.cluster.enabled) {
      this.#built = undefined;
      await before?.peers.replace([]);
    } else if (before === undefined) {
      this.#built = await clusterOf(this.#parts);
    } else {
      await before.taken();
    }
    this.#settings = settings;
    this.#change.notify();
  }

  /** Looks after the peers, anew from each change on. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const stop = new AbortController();
      const until = AbortSignal.any([signal, stop.signal]);
      const changed = this.#change.next(signal).catch(() => undefined);
      try {
        await Promise.all([changed.then(() => stop.abort()), this.#built?.run(until)]);
      } finally {
        stop.abort();
      }
    }
  }
}

const textOf = ({ cluster }: Config) => JSON.stringify(cluster);
