// The hosts that were found, and which of them an owner confirmed, on disk; and what each peer had when
// it was last asked. Others may write beside it (the command line).

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';

export const CLUSTER_SCOPE = 'cluster';

/** Found; confirmed as it said it was; said something else since then. */
export type HostState = 'found' | 'confirmed' | 'changed';

export type HostRow = {
  /** `host:port`, its name on disk. */
  readonly address: string;
  readonly state: HostState;
  readonly kind: LocalVendor;
  readonly models: readonly string[];
  /** Of what it said: when it was confirmed, or else last. */
  readonly mark: string;
  /** Epoch milliseconds. */
  readonly seenAt: number;
};

type Had = { readonly apiBase: string; readonly models: readonly string[] };

const HOST = rowShape<Omit<HostRow, 'models'>>({
  ...{ address: text, state: text, kind: text, mark: text, seenAt: number },
});
const HAD = rowShape<Pick<Had, 'apiBase'>>({ apiBase: text });
const HOST_KEY = 'host:';
const HAD_KEY = 'had:';

export class ClusterBook {
  readonly #state: KeyValueStore;

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async all(): Promise<readonly HostRow[]> {
    const rows = await this.#state.list(HOST_KEY);
    return rows.flatMap(({ value }) => hostIn(value) ?? []);
  }

  async get(address: string): Promise<HostRow | undefined> {
    return hostIn((await this.#state.get(HOST_KEY + address)) ?? '');
  }

  put(row: HostRow): Promise<void> {
    return this.#state.set(HOST_KEY + row.address, JSON.stringify(row));
  }

  /** The address it had; undefined where it is none that is known. */
  async forget(address: string): Promise<HostRow | undefined> {
    const row = await this.get(address);
    if (row !== undefined) await this.#state.delete(HOST_KEY + address);
    return row;
  }

  /** As it is known now, and not what it says later. */
  async confirm(address: string): Promise<HostRow | undefined> {
    const row = await this.get(address);
    if (row === undefined) return undefined;
    const confirmed = { ...row, state: 'confirmed' as const };
    await this.put(confirmed);
    return confirmed;
  }

  async had(name: string, apiBase: string): Promise<readonly string[]> {
    const value = (await this.#state.get(HAD_KEY + name)) ?? '';
    const row = jsonRow(value, HAD) as Had | undefined;
    return row?.apiBase === apiBase ? row.models : [];
  }

  noteHad(name: string, had: Had): Promise<void> {
    return this.#state.set(HAD_KEY + name, JSON.stringify(had));
  }
}

const hostIn = (value: string) => jsonRow(value, HOST) as HostRow | undefined;

/** The name of a host that was confirmed: its address, as a name may be written. */
export const hostName = (address: string) => address.replaceAll(':', '-');
