// A turn's view of its conversation: the history, the entries of this turn, and the reduced view
// that the model gets where the whole does not fit. Entries go to the session store first.

import type { AttachedMedia } from '../kernel/message/attachment.ts';
import type { MediaId, MessageId, SessionKey, TurnId } from '../kernel/message/ids.ts';
import { shownMessages, type TimeStamp } from '../kernel/message/late.ts';
import type { TurnOutcome } from '../kernel/message/message.ts';
import type {
  AssistantEntry,
  ModelMessage,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
  TurnEndEntry,
  UserEntry,
} from '../kernel/message/transcript.ts';
import { withoutWhole } from '../kernel/sessions/rules/earlier.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { Clock } from '../lib/time/clock.ts';
import {
  type ClearingAim,
  clearedAmong,
  fitEntries,
  floorTokens,
  onlyTurn,
  type ResultKey,
  resultsToClear,
  withCleared,
} from './rules/context-fit.ts';
import type { Offered } from './rules/context-marks.ts';
import { type KnownTexts, knownTextsOf } from './rules/taint.ts';
import {
  type Round,
  roundsOf,
  shownThrough,
  threadView,
  writtenTexts,
} from './rules/turn-closing.ts';

type ThreadOptions = {
  readonly sessions: SessionStore;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly epoch: number | undefined;
  readonly cleared: ClearedResults;
  readonly stampOf: TimeStamp;
  /** Whether the model can read cleared results again. */
  canReadBack(): boolean;
};

/**
 * Cleared tool results by session: they stay cleared in later turns, so that the prompt cache stays
 * valid. In memory only: after a restart the same ones are cleared again.
 */
export type ClearedResults = Map<SessionKey, ReadonlySet<ResultKey>>;

type PartialAnswer = { readonly text: string; readonly model: string };

export class Thread {
  readonly #options: ThreadOptions;
  #own: TranscriptEntry[] = [];
  #view: readonly TranscriptEntry[] = [];
  #history: readonly TranscriptEntry[] = [];
  #asked: ReadonlySet<MessageId> = new Set();
  #cleared: ReadonlySet<ResultKey> = new Set();
  #omitted = 0;
  #throughSeq = 0;
  #isTainted = false;
  /** When the newest message that the turn answers arrived, epoch milliseconds. */
  requestedAt: number | undefined;
  /** What the person has seen of the running call. */
  partial: PartialAnswer | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /**
   * `own`: the stored entries of this turn; `asked`: the messages of this attempt. Messages that an
   * earlier attempt showed to the model count as consumed, whether or not the bus returned them.
   */
  open(
    history: readonly TranscriptEntry[],
    own: readonly TranscriptEntry[],
    asked: readonly MessageId[],
    isNoteTainted = false,
  ): void {
    this.#isTainted = isNoteTainted;
    this.#own = [...own];
    this.#asked = new Set(asked);
    this.#history = history;
    this.consumed(shownThrough(own));
    this.#see(this.#wholeView());
    const { cleared, session } = this.#options;
    this.#cleared = clearedAmong(this.#view, cleared.get(session) ?? new Set());
  }

  /** The conversation was summarised meanwhile: `history` is what the store shows now. */
  reopen(history: readonly TranscriptEntry[]): void {
    this.#history = history;
    this.#omitted = 0;
    this.#see(this.#wholeView());
  }

  #wholeView(): readonly TranscriptEntry[] {
    const { turnId } = this.#options;
    return threadView(this.#history, this.#own, { turnId, asked: this.#asked });
  }

  #see(view: readonly TranscriptEntry[]): void {
    this.#view = view;
    this.#isTainted ||= view.some(isForeign);
  }

  /** Whether the conversation has messages before this turn. */
  get hasEarlier(): boolean {
    const { turnId } = this.#options;
    return this.#history.some((entry) => 'turnId' in entry && entry.turnId !== turnId);
  }

  async record(
    entries: readonly TranscriptEntry[],
    { durable }: { readonly durable: boolean },
  ): Promise<void> {
    if (entries.length === 0) return;
    const { sessions, session, epoch } = this.#options;
    const marked = this.isTainted ? entries.map(withTaint) : entries;
    // The model gets the entries as written: the same now, in later calls and after a restart.
    const written = await sessions.append(session, marked, { durable, epoch });
    const kept = written.map(withoutWhole);
    this.#own.push(...kept);
    this.#view = [...this.#view, ...kept];
    this.#isTainted ||= kept.some(isForeign);
  }

  /**
   * Commits the recorded entries in the background, so that a crash does not restart the turn. If
   * it fails, the next durable record or the turn's end commits them.
   */
  commitBehind(): void {
    const { sessions, session, epoch } = this.#options;
    sessions.append(session, [], { durable: true, epoch }).catch(() => undefined);
  }

  consumed(seq: number): void {
    this.#throughSeq = Math.max(this.#throughSeq, seq);
  }

  get throughSeq(): number {
    return this.#throughSeq;
  }

  get end(): TurnEndEntry | undefined {
    return this.#own.find((entry) => entry.role === 'turn_end');
  }

  /** The recorded entries of this turn. */
  get own(): readonly TranscriptEntry[] {
    return this.#own;
  }

  get answers(): readonly AssistantEntry[] {
    return this.#own.filter((entry) => entry.role === 'assistant');
  }

  get results(): readonly ToolEntry[] {
    return this.#own.filter((entry) => entry.role === 'tool');
  }

  /** The calls of the turn's answers, oldest first. */
  get rounds(): readonly Round[] {
    return roundsOf(this.#own);
  }

  /** Texts this turn wrote for the person, oldest first; `last` is not recorded yet. */
  written(last?: string): readonly string[] {
    return writtenTexts(this.answers, last);
  }

  /** An answer of this turn was requested again because of its claims. */
  get wasDoubted(): boolean {
    return this.answers.some(({ unsupported }) => unsupported !== undefined);
  }

  /** Whether a tool was called in this turn. */
  get hasCalls(): boolean {
    return this.answers.some(({ toolCalls }) => toolCalls.length > 0);
  }

  /** The view contains untrusted content, or did so earlier in this turn. */
  get isTainted(): boolean {
    return this.#isTainted;
  }

  /** Media of the conversation's messages and tool results, oldest first, each once. */
  get attached(): readonly AttachedMedia[] {
    const all = [...this.#history, ...this.#own].flatMap((entry) =>
      'media' in entry ? (entry.media ?? []) : [],
    );
    return [...new Map(all.map((one) => [`${one.media} ${one.name ?? ''}`, one])).values()];
  }

  /** It came only with messages without untrusted content. */
  isOwnMedia(media: MediaId): boolean {
    const holding = [...this.#history, ...this.#own].filter(
      (entry) => 'media' in entry && entry.media?.some((one) => one.media === media),
    );
    const isOwn = (entry: TranscriptEntry) => entry.role === 'user' && entry.isForeign !== true;
    return holding.length > 0 && holding.every(isOwn);
  }

  /** What the model is shown, by author. */
  get knownTexts(): KnownTexts {
    return knownTextsOf(this.#view);
  }

  /** Whether an earlier attempt showed the model messages that are not among `asked`. */
  hasOthersThan(asked: readonly MessageId[]): boolean {
    return this.#view.some(
      (entry) =>
        entry.role === 'user' &&
        entry.turnId === this.#options.turnId &&
        entry.messageId !== undefined &&
        !asked.includes(entry.messageId),
    );
  }

  hasMessage(id: MessageId): boolean {
    return this.#own.some((entry) => entry.role === 'user' && entry.messageId === id);
  }

  /** The place of a call of the newest answer among all calls of the turn: the same on a retry. */
  ordinalOf(call: ToolCall): number {
    const earlier = this.answers.slice(0, -1).flatMap((entry) => entry.toolCalls).length;
    return earlier + (this.answers.at(-1)?.toolCalls.findIndex(({ id }) => id === call.id) ?? 0);
  }

  /**
   * Earlier calls of the conversation, oldest first; of the newest answer those before this call.
   */
  callsBefore(call: ToolCall): readonly ToolCall[] {
    const { turnId } = this.#options;
    const past = this.#history.filter((entry) => 'turnId' in entry && entry.turnId !== turnId);
    const newest = this.answers.at(-1)?.toolCalls ?? [];
    const at = newest.findIndex(({ id }) => id === call.id);
    const before = [...past, ...this.answers.slice(0, -1)].flatMap((entry) =>
      entry.role === 'assistant' ? entry.toolCalls : [],
    );
    return [...before, ...(at === -1 ? newest : newest.slice(0, at))];
  }

  /** `entries`: those of `shown`, or their replacements; `offered`: the tools of the call. */
  messagesOf(entries: readonly TranscriptEntry[], offered: Offered): readonly ModelMessage[] {
    return shownMessages(entries, { ...this.#options, omitted: this.#omitted, offered });
  }

  /** What the model is shown. */
  get shown(): readonly TranscriptEntry[] {
    if (this.#cleared.size === 0) return this.#view;
    return withCleared(this.#view, this.#cleared, this.#options.canReadBack());
  }

  /** Number of cleared results. */
  get clearedResults(): number {
    return this.#cleared.size;
  }

  /** Replaces the oldest tool results by a line; returns how many. */
  clear(aim: ClearingAim): number {
    const keys = resultsToClear(this.#view, this.#cleared, aim);
    this.#cleared = new Set([...this.#cleared, ...keys]);
    this.#options.cleared.set(this.#options.session, this.#cleared);
    return keys.length;
  }

  /** The least size of the view without shortening a text (uncorrected estimate). */
  get floorTokens(): number {
    return floorTokens(this.shown, this.#options.turnId);
  }

  /** Reduces the view to `maxTokens`, or to `keepTokens` where turns are left out. */
  shrink(maxTokens: number, keepTokens = maxTokens): void {
    const { turnId, canReadBack } = this.#options;
    this.#show(fitEntries(this.shown, turnId, maxTokens, canReadBack(), keepTokens));
  }

  /** Leaves out everything before this turn. */
  forgetHistory(): void {
    this.#show(onlyTurn(this.#view, this.#options.turnId));
  }

  #show(fitted: ReturnType<typeof fitEntries>): void {
    this.#see(fitted.entries);
    this.#omitted += fitted.omitted;
  }
}

const isForeign = (entry: TranscriptEntry) => 'isForeign' in entry;

const withTaint = (entry: TranscriptEntry): TranscriptEntry =>
  entry.role === 'assistant' ? { ...entry, isTainted: true } : entry;

// Changes of a conversation between turns: undo of its last exchange, and reactions to an answer.
// Stored entries are never modified.

/** A message that a turn answered, with its place in the session's order. */
export type Asked = { readonly seq: number; readonly id: MessageId };

/** `turnId`: the turn it is about; `messageId`: makes a repetition harmless. */
export type Remark = Pick<UserEntry, 'turnId' | 'text' | 'isForeign'> & {
  readonly messageId: MessageId;
};

export type Revisions = ReturnType<typeof createRevisions>;

const MAX_RESTORABLE = 9;

type RevisionDeps = {
  readonly sessions: SessionStore;
  readonly clock: Clock;
  /** Discards what was prepared for the session's next turn. */
  outdated(session: SessionKey): void;
};

export function createRevisions({ sessions, clock, outdated }: RevisionDeps) {
  return {
    /**
     * The newest turn with an answer in view; `by`: the message with the command. `isTakenBack`: it
     * was undone by this very command before. `askedBy`: the first message it answered; undefined
     * where that is not in view.
     */
    async lastTurn(session: SessionKey, by: MessageId) {
      const window = await sessions.load(session);
      const earlier = window.find((entry) => entry.role === 'undo' && entry.by === by);
      if (earlier?.role === 'undo') {
        return { turnId: earlier.undoes, isTakenBack: true, askedBy: undefined };
      }
      const last = window.findLast(({ role }) => role === 'assistant' || role === 'turn_end');
      if (last === undefined || !('turnId' in last)) return undefined;
      const { turnId } = last;
      const asked = window.find((entry) => entry.role === 'user' && entry.turnId === turnId);
      const askedBy = asked?.role === 'user' ? asked.messageId : undefined;
      return { turnId, isTakenBack: false, askedBy };
    },

    /** The messages that the turn answered, in order; also of an undone turn. */
    async asked(session: SessionKey, turnId: TurnId): Promise<readonly Asked[]> {
      const entries = await sessions.turn(session, turnId);
      const end = entries.find((entry) => entry.role === 'turn_end');
      const through = end?.role === 'turn_end' ? end.throughSeq : Number.POSITIVE_INFINITY;
      const places = new Map<MessageId, number>();
      for (const entry of entries) {
        // A remark has no place in the order, because no person asked it.
        if (entry.role !== 'user' || entry.messageId === undefined) continue;
        if (entry.seq !== undefined && entry.seq <= through) {
          places.set(entry.messageId, entry.seq);
        }
      }
      return [...places].map(([id, seq]) => ({ id, seq }));
    },

    /** The tools that ran in the turn, each once; also of an undone turn. */
    async usedTools(session: SessionKey, turnId: TurnId): Promise<readonly string[]> {
      const entries = await sessions.turn(session, turnId);
      const ran = entries.flatMap((entry) =>
        entry.role === 'tool' && entry.isBlocked !== true ? entry.name : [],
      );
      return [...new Set(ran)];
    },

    /** How the turn ended; undefined where it is running, or its record is gone. */
    async outcome(session: SessionKey, turnId: TurnId): Promise<TurnOutcome['kind'] | undefined> {
      const entries = await sessions.turn(session, turnId);
      return entries.find((entry) => entry.role === 'turn_end')?.outcome;
    },

    /** Hides the turn from the model. Durable when it resolves. */
    async takeBack(session: SessionKey, turnId: TurnId, by: MessageId): Promise<void> {
      const entry = { role: 'undo', undoes: turnId, by, at: clock.now() } as const;
      await sessions.append(session, [entry], { durable: true });
      outdated(session);
    },

    /** What `/new` and `/undo` hid, the newest first. */
    restorable: (session: SessionKey) => sessions.restorePoints(session, MAX_RESTORABLE),
    /** Restores the entry at this index of `restorable`. Durable when it resolves. */
    async restore(session: SessionKey, index: number, by: MessageId) {
      const restored = await sessions.restore(session, index, by);
      outdated(session);
      return restored;
    },

    /** Shown to the model with the next turn. Durable when it resolves. */
    async remark(session: SessionKey, remark: Remark): Promise<void> {
      const entry = { role: 'user', ...remark, at: clock.now() } as const;
      await sessions.append(session, [entry], { durable: true });
      outdated(session);
    },
  };
}
