// CONTRACT of conversation storage: append-only entries per session, loaded at a cost that depends
// on the carried window and never on the age of the session. Passes test/contract/session-store.ts.

import type { NewEntryRow } from '../bus/store/store.ts';
import type { MessageId, SessionKey, TurnId } from '../message/ids.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import type { RestorePoint } from './rules/carry.ts';
import type { EarlierQuestion, EarlierTurns } from './rules/earlier.ts';
import type { RequestPiece } from './rules/request-records.ts';

/** The request log, beside the conversations. */
export interface RequestLog {
  /**
   * Stores `ask` and the pieces it names, each once for a conversation, behind the turn: it returns
   * at once and never throws, and what cannot be written is only missing when a turn is replayed.
   */
  keep(session: SessionKey, ask: RequestPiece, pieces: () => readonly RequestPiece[]): void;
}

export type AppendOptions = {
  /**
   * True: on disk when the promise resolves, with everything appended before; false: with the next
   * durable append or with the end of the turn.
   */
  readonly durable: boolean;
  /** The claim of the appending turn: one that has lost its session writes nothing. */
  readonly epoch?: number | undefined;
};

/** The bus's interface to conversations when a turn ends. */
export interface TurnEntries {
  /**
   * `write` commits the entries that are still to be written, in one transaction with the turn's
   * end.
   */
  endTurn(
    session: SessionKey,
    write: (entries: readonly NewEntryRow[]) => Promise<'ended' | 'lost'>,
  ): Promise<'ended' | 'lost'>;
}

export interface SessionStore extends AsyncDisposable {
  /**
   * What the model may see: entries since the last `reset` or `summary` in the newest file (a new
   * file starts with what carries over). Damaged lines are set aside, never thrown. `forNextTurn`:
   * what a turn that begins now sees; if a new file is due, its opening.
   */
  load(session: SessionKey, forNextTurn?: 'forNextTurn'): Promise<readonly TranscriptEntry[]>;
  /**
   * Appends in order; returns the entries as written, with configured secrets redacted. `load`
   * shows them at once. One writer per session. @throws SessionError if the turn has lost its
   * session
   */
  append(
    session: SessionKey,
    entries: readonly TranscriptEntry[],
    options: AppendOptions,
  ): Promise<readonly TranscriptEntry[]>;
  /**
   * Appends durably if `isTrue` holds for what `load` would return, with nothing in between;
   * returns whether it did.
   */
  appendIf(
    session: SessionKey,
    entries: readonly TranscriptEntry[],
    isTrue: (window: readonly TranscriptEntry[]) => boolean,
  ): Promise<boolean>;
  /**
   * Whole turns of this conversation as they were recorded, oldest first, whether or not they are
   * still visible: nothing from before its last `reset`, nothing that was undone.
   */
  earlier(session: SessionKey, question: EarlierQuestion): Promise<EarlierTurns>;
  /** What can be restored into view, newest first. */
  restorePoints(session: SessionKey, maxPoints: number): Promise<readonly RestorePoint[]>;
  /**
   * Restores the item at that place of `restorePoints` into view, durably; returns the outcome.
   * Idempotent per message: a repeat returns the same.
   */
  restore(
    session: SessionKey,
    index: number,
    by: MessageId,
  ): Promise<RestorePoint | 'done before' | undefined>;
  /** The recorded entries of a turn in order; empty for a new one. */
  turn(session: SessionKey, turnId: TurnId): Promise<readonly TranscriptEntry[]>;
}
