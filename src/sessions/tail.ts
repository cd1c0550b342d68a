// The end of a session as it is kept in memory: what the model may see and which turns the newest
// file holds. Filled from disk once, then kept up to date by every append.

import type { TurnId } from '../core/ids.ts';
import {
  changesWindow,
  type Growth,
  tokensOfBytes,
  turnOf,
  windowOf,
} from '../core/session/carry.ts';
import type { SessionFileName } from '../core/session/name.ts';
import type { TranscriptEntry } from '../core/transcript.ts';

/** The place in the newest file where the next entry goes. */
export type FileEnd = {
  readonly name: SessionFileName;
  /** Bytes up to the last whole line. */
  readonly size: number;
  readonly growth: Growth;
};

export type TurnRecord = { readonly id: TurnId; readonly entries: readonly TranscriptEntry[] };

export type TailContent = {
  /** Undefined while the session has no file. */
  readonly end: FileEnd | undefined;
  /** What the file opens with. */
  readonly carried: readonly TranscriptEntry[];
  /** What was written into the file first. */
  readonly own: readonly TranscriptEntry[];
  /** Last turn of the file before: it may be retried after a crash. */
  readonly turnBefore: TurnRecord | undefined;
};

export class SessionTail {
  #end: FileEnd | undefined;
  #window: TranscriptEntry[];
  readonly #turns = new Map<TurnId, TranscriptEntry[]>();
  readonly #turnBefore: TurnRecord | undefined;

  constructor(content: TailContent) {
    this.#end = content.end;
    this.#window = [...windowOf([...content.carried, ...content.own])];
    this.#turnBefore = content.turnBefore;
    this.#noteTurns(content.own);
  }

  get end(): FileEnd | undefined {
    return this.#end;
  }

  get window(): readonly TranscriptEntry[] {
    return this.#window;
  }

  /** The turn's entries in order; undefined for one that is not known here. */
  turn(id: TurnId): readonly TranscriptEntry[] | undefined {
    const before = this.#turnBefore?.id === id ? this.#turnBefore.entries : undefined;
    return this.#turns.get(id) ?? before;
  }

  get lastTurn(): TurnRecord | undefined {
    const last = [...this.#turns].at(-1);
    return last === undefined ? this.#turnBefore : { id: last[0], entries: last[1] };
  }

  /** The entries were written at the end, `bytes` of them. */
  appended(entries: readonly TranscriptEntry[], bytes: number): void {
    if (this.#end === undefined) return;
    const grown = this.#end.growth.bytes + bytes;
    this.#end = {
      name: this.#end.name,
      size: this.#end.size + bytes,
      growth: { bytes: grown, tokens: tokensOfBytes(grown) },
    };
    this.#window.push(...entries);
    if (entries.some(changesWindow)) this.#window = [...windowOf(this.#window)];
    this.#noteTurns(entries);
  }

  #noteTurns(entries: readonly TranscriptEntry[]): void {
    for (const entry of entries) {
      const id = turnOf(entry);
      if (id === undefined) continue;
      const known = this.#turns.get(id);
      if (known === undefined) this.#turns.set(id, [entry]);
      else known.push(entry);
    }
  }
}
