// What is added to a conversation between turns: that its last exchange was taken back, and what people
// thought of an answer. Nothing that was written is changed.

import type { TurnOutcome } from '../kernel/message/event.ts';
import type { MessageId, SessionKey, TurnId } from '../kernel/message/ids.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { Clock } from '../lib/time/clock.ts';

export type LastTurn = {
  readonly turnId: TurnId;
  /** The first message it answered; undefined where that is not in view. */
  readonly askedBy?: MessageId;
  /** It was taken back by this very command before. */
  readonly isTakenBack: boolean;
};

/** A message that a turn answered, with its place in the session's order. */
export type Asked = { readonly seq: number; readonly id: MessageId };

export type Remark = {
  /** The turn it is about. */
  readonly turnId: TurnId;
  /** Makes a repeat of it harmless. */
  readonly messageId: MessageId;
  readonly text: string;
  /** It may hold words of others. */
  readonly isForeign?: true;
};

export type Revisions = ReturnType<typeof createRevisions>;

const MAX_RESTORABLE = 9;

export type RevisionDeps = {
  readonly sessions: SessionStore;
  readonly clock: Clock;
  /** What was prepared for the session's next turn is no longer true. */
  outdated(session: SessionKey): void;
};

export function createRevisions({ sessions, clock, outdated }: RevisionDeps) {
  return {
    /** The newest turn with an answer in view; `by`: the message that asks for it. */
    async lastTurn(session: SessionKey, by: MessageId): Promise<LastTurn | undefined> {
      const window = await sessions.load(session);
      const earlier = window.find((entry) => entry.role === 'undo' && entry.by === by);
      if (earlier?.role === 'undo') return { turnId: earlier.undoes, isTakenBack: true };
      const last = window.findLast(({ role }) => role === 'assistant' || role === 'turn_end');
      if (last === undefined || !('turnId' in last)) return undefined;
      const { turnId } = last;
      const asked = window.find((entry) => entry.role === 'user' && entry.turnId === turnId);
      const askedBy = asked?.role === 'user' ? asked.messageId : undefined;
      return { turnId, isTakenBack: false, ...(askedBy === undefined ? {} : { askedBy }) };
    },

    /** What the turn answered, in order; also of one that was taken back. */
    async asked(session: SessionKey, turnId: TurnId): Promise<readonly Asked[]> {
      const entries = await sessions.turn(session, turnId);
      const end = entries.find((entry) => entry.role === 'turn_end');
      const through = end?.role === 'turn_end' ? end.throughSeq : Number.POSITIVE_INFINITY;
      const places = new Map<MessageId, number>();
      for (const entry of entries) {
        // A remark has no place in the order: nobody asked it.
        if (entry.role !== 'user' || entry.messageId === undefined) continue;
        if (entry.seq !== undefined && entry.seq <= through) {
          places.set(entry.messageId, entry.seq);
        }
      }
      return [...places].map(([id, seq]) => ({ id, seq }));
    },

    /** How the turn ended; undefined where it has not, or its record is gone. */
    async outcome(session: SessionKey, turnId: TurnId): Promise<TurnOutcome['kind'] | undefined> {
      const entries = await sessions.turn(session, turnId);
      return entries.find((entry) => entry.role === 'turn_end')?.outcome;
    },

    /** From now on the model is shown nothing of the turn. Durable when resolved. */
    async takeBack(session: SessionKey, turnId: TurnId, by: MessageId): Promise<void> {
      const entry = { role: 'undo', undoes: turnId, by, at: clock.now() } as const;
      await sessions.append(session, [entry], { durable: true });
      outdated(session);
    },

    /** What `/new` and `/undo` took out of view, the newest first. */
    restorable: (session: SessionKey) => sessions.restorePoints(session, MAX_RESTORABLE),
    /** Brings the one at this place of `restorable` back. Durable when resolved. */
    async restore(session: SessionKey, index: number, by: MessageId) {
      const restored = await sessions.restore(session, index, by);
      outdated(session);
      return restored;
    },

    /** Shown to the model with the next turn. Durable when resolved. */
    async remark(session: SessionKey, remark: Remark): Promise<void> {
      const entry = { role: 'user', ...remark, at: clock.now() } as const;
      await sessions.append(session, [entry], { durable: true });
      outdated(session);
    },
  };
}
