// The hosts that were found, and which of them an owner confirmed, on disk; and what each peer had when
// it was last asked. Others may write beside it (the command line).

import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { number, rowShape, text, texts } from '../../lib/json/json.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';

const SCOPE = 'cluster';

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

const HOST = rowShape<HostRow>({
  ...{ address: text, models: texts, state: text, kind: text, mark: text, seenAt: number },
});
const HAD = rowShape<Had>({ apiBase: text, models: texts });

export type ClusterRows = {
  /** By their address. */
  readonly hosts: Rows<HostRow>;
  /** What each peer had when it was last asked, by its name. */
  readonly had: Rows<Had>;
};

export const openClusterRows = (rows: OpenRows): ClusterRows => ({
  hosts: rows({ ...jsonRows(HOST), scope: SCOPE, prefix: 'host:' }),
  had: rows({ ...jsonRows(HAD), scope: SCOPE, prefix: 'had:' }),
});

/** The name of a host that was confirmed: its address, as a name may be written. */
export const hostName = (address: string) => address.replaceAll(':', '-');
