// CONTRACT of a store on which several processes work: which of them live, and which
// leads what. A process that is taken for dead loses its turns and what it leads; what it still
// writes under an old hold changes nothing.

import type { Exclusively } from '../../../lib/files/guarded-files.ts';
import type { AccountName, SessionKey } from '../../message/ids.ts';
import type { LiveUpdate } from '../../message/message.ts';

/** What a process does: `channels` runs no turns, `workers` runs no accounts. */
export type NodeRole = 'all' | 'channels' | 'workers';

/** How a process describes itself to the others. */
export type NodeSelf = {
  /** Machine and process number. */
  readonly name: string;
  readonly role: NodeRole;
  readonly version: string;
  /** A hash of its configuration. */
  readonly config: string;
};

export type NodeReport = NodeSelf & {
  readonly owner: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Since its last sign of life. */
  readonly silentMs: number;
  readonly isDraining: boolean;
  /** Accounts and tasks. */
  readonly leads: readonly string[];
  /** Running turns. */
  readonly turns: number;
};

/** What the bus needs of a store that several processes use. */
export interface SharedStore {
  /** This process, as the others see it. */
  readonly owner: string;
  /** Another process has written, or has come or gone. Several of these are one call. */
  onNews(hear: (news: StoreNews) => void): Disposable;
  /**
   * How many others come before this process where a turn of the session is due; undefined if it
   * does not count among those that run turns. All agree as soon as all know the same processes.
   * @param isBusy this one comes behind others that are not
   */
  rankFor(session: SessionKey, isBusy?: boolean): number | undefined;
  /** This process was taken for dead, or cut off for so long that others may take it for dead. */
  onLost(hear: () => void): Disposable;
  /** False while it is cut off from the others. */
  isConnected(): boolean;
  /** Turns that this process holds. */
  held(): Promise<readonly HeldTurn[]>;
  /** Whether this process leads it. */
  isLeading(resource: string): Promise<boolean>;
  /** The epoch of leading it from now on; undefined while another live process does. */
  lead(resource: string): Promise<number | undefined>;
  release(resource: string): Promise<void>;
  /** For changes of files that all processes share, such as notes. @throws StoreError */
  readonly exclusively: Exclusively;
  /** As last seen, at most a second ago. Others settle what a process held that is gone. */
  isLive(owner: string): boolean;
  /** As last seen, at most a second ago. */
  leaderOf(resource: string): string | undefined;
  /** Whether another process that is not about to end runs accounts. */
  hasOtherChannels(): boolean;
  /** Whether a turn is due; takes no lock. */
  isTurnDue(): Promise<boolean>;
  /** Turns of this process that were cancelled, or have a follower. */
  newsOfTurns(): Promise<readonly TurnNews[]>;
  /** Shows a running turn to the other processes; best effort. */
  show(update: LiveUpdate, shown: (update: LiveUpdate) => LiveUpdate): void;
  /** Live updates of other processes; `wants`: those of which accounts are read at all. */
  onShown(hear: (update: LiveUpdate) => void, wants: (account: AccountName) => boolean): Disposable;
  /** From now on the others do not count on this process. */
  drain(): void;
  /** What the clock of this machine lacks to that of the server, milliseconds. */
  offsetMs(): number;
}

/** What other processes changed that may concern this one. */
export type StoreNews = {
  /** Anything may have changed. */
  readonly isAnything: boolean;
  /** Another process leads something, or has given it back. */
  readonly isAboutLeads: boolean;
  readonly lanes: readonly LaneNews[];
  /** Rows of these were written. */
  readonly scopes: ReadonlySet<string>;
  /** Messages of these may be due to be sent. */
  readonly accounts: ReadonlySet<string>;
};

/** A session after a commit. */
export type LaneNews = {
  readonly session: SessionKey;
  /** Epoch milliseconds; undefined: it is held, or nothing waits. */
  readonly readyAt: number | undefined;
  /** This process holds it: its turn has a follower, or was stopped. */
  readonly isOwn: boolean;
  readonly isStopped: boolean;
};

export type HeldTurn = { readonly session: SessionKey; readonly epoch: number };

/** `stopped`: why it was cancelled. */
export type TurnNews = { readonly session: SessionKey; readonly stopped: string | null };
