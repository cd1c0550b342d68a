// CONTRACT of conversation storage: append-only entries per session, loaded at a cost that depends
// on the carried window and never on the age of the session. Passes test/contract/session-store.ts.

import type { NewEntryRow } from '../bus/store/store.ts';
import type { MessageId, SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import type { RestorePoint } from './rules/carry.ts';
import type { EarlierQuestion, EarlierTurns } from './rules/earlier.ts';
import type { RequestPiece } from './rules/request-records.ts';

/** Keeps what models were asked with, beside the conversations. */
export interface RequestLog {
  /**
   * Keeps `ask` and the pieces it names, each once for a conversation, behind the turn: it returns at
   * once and never throws, and what cannot be written is only missing when a turn is played again.
   */
  keep(session: SessionKey, ask: RequestPiece, pieces: () => readonly RequestPiece[]): void;
}

export type AppendOptions = {
  /**
   * On the disk when the promise resolves, with all that was appended before; else with the next durable
   * append or with the end of the turn.
   */
  readonly durable: boolean;
  /** Of the claim of the turn that appends: one that has lost its session writes nothing. */
  readonly epoch?: number;
};

/** What the bus asks of conversations when a turn ends. */
export interface TurnEntries {
  /** `write` commits the entries that are still to be written, in one transaction with the turn's end. */
  endTurn(
    session: SessionKey,
    write: (entries: readonly NewEntryRow[]) => Promise<'ended' | 'lost'>,
  ): Promise<'ended' | 'lost'>;
}

export interface SessionStore extends AsyncDisposable {
  /**
   * What the model may see: entries since the last `reset` or `summary` that the newest file holds
   * (a new file opens with what carries over). Damaged lines are set aside, never thrown. With
   * `forNextTurn` what a turn that begins now is shown: where a new file is due, what that opens with.
   */
  load(session: SessionKey, forNextTurn?: 'forNextTurn'): Promise<readonly TranscriptEntry[]>;
  /**
   * Appends in order; the entries as they are written, without configured secrets. `load` shows them at
   * once. One writer per session. @throws SessionError where the turn has lost its session
   */
  append(
    session: SessionKey,
    entries: readonly TranscriptEntry[],
    options: AppendOptions,
  ): Promise<readonly TranscriptEntry[]>;
  /**
   * Appends durably where `isTrue` says so of what `load` would give, with nothing in between; whether
   * it did.
   */
  appendIf(
    session: SessionKey,
    entries: readonly TranscriptEntry[],
    isTrue: (window: readonly TranscriptEntry[]) => boolean,
  ): Promise<boolean>;
  /**
   * Whole turns of this conversation as they were recorded, oldest first, whether or not they are
   * still shown: nothing from before its last `reset`, nothing that was taken back.
   */
  earlier(session: SessionKey, question: EarlierQuestion): Promise<EarlierTurns>;
  /** What can be brought back into view, the newest first. */
  restorePoints(session: SessionKey, maxPoints: number): Promise<readonly RestorePoint[]>;
  /**
   * Brings what stands at that place of `restorePoints` back into view, durably; what came of it. The
   * same message does it once: asked again, the answer is the same.
   */
  restore(
    session: SessionKey,
    index: number,
    by: MessageId,
  ): Promise<RestorePoint | 'done before' | undefined>;
  /** What is already recorded of a turn: its entries, in order; empty for a new one. */
  turn(session: SessionKey, turnId: TurnId): Promise<readonly TranscriptEntry[]>;
}
