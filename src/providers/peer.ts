// CONTRACT of another machine that runs models for us: who may be asked, and which models it has. Only
// peers that the configuration names or an owner confirmed are ever handed out.

import type { LocalServerAddress } from './local-site.ts';

export type Peer = LocalServerAddress & { readonly peer: string };

export interface Peers {
  /** Which of the two is asked where both have a model. */
  readonly prefer: 'peer' | 'local';
  named(name: string): Peer | undefined;
  /** That lists exactly this model; `up`: and answered lately. */
  having(model: string, state: 'up' | 'known'): Peer | undefined;
  /** Undefined once all were looked at; it never waits for long. */
  looked(): Promise<void> | undefined;
}

export const NO_PEERS: Peers = {
  prefer: 'local',
  named: () => undefined,
  having: () => undefined,
  looked: () => undefined,
};
