// Applies the configuration of the cluster at run time: builds it when it is switched on, removes
// it when it is switched off, and updates peers and discovery. A response in progress from a
// removed peer is aborted.

import type { Config } from '../../kernel/config/config.ts';
import { createChange } from '../../lib/async.ts';
import type { Peers } from '../../providers/local-site.ts';
import type { Cluster, ClusterParts } from './cluster.ts';

export { type ClusterService, clusterCommands, peersOnce } from './cluster-service.ts';

/** Undefined where the cluster is switched off; its code is not loaded then. @throws StoreError */
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

  /**
   * Applies the current configuration; does nothing where the section did not change.
   * @throws StoreError
   */
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

  /** Runs health checks and discovery until the signal aborts; restarts them after each change. */
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
