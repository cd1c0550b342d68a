// A turn's view of its conversation: what came before, what this turn has recorded, and the smaller
// view that the model is shown once the whole does not fit. Records go to the session store first.

import type { AttachedMedia } from '../kernel/message/attachment.ts';
import type { MessageId, SessionKey, TurnId } from '../kernel/message/ids.ts';
import { shownMessages, type TimeStamp } from '../kernel/message/late.ts';
import type {
  AssistantEntry,
  ModelMessage,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
  TurnEndEntry,
} from '../kernel/message/transcript.ts';
import { withoutWhole } from '../kernel/sessions/rules/earlier.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import {
  type ClearingAim,
  clearedAmong,
  type ResultKey,
  resultsToClear,
  withCleared,
} from './rules/clear-results.ts';
import { fitEntries, floorTokens, onlyTurn } from './rules/context-fit.ts';
import type { Offered } from './rules/context-marks.ts';
import { type KnownTexts, knownTextsOf } from './rules/taint.ts';
import {
  lastWordOf,
  openCallsOf,
  type Round,
  roundsOf,
  shownThrough,
  threadView,
  tokensSpent,
  writtenTexts,
} from './rules/turn-closing.ts';

export type ThreadOptions = {
  readonly sessions: SessionStore;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly cleared: ClearedResults;
  readonly stampOf: TimeStamp;
  /** Whether the model can ask for what was cleared. */
  canReadBack(): boolean;
};

/**
 * Results of tools that are no longer shown, by conversation: what is cleared stays cleared in later
 * turns, so that the prompt cache holds. Only memory: after a restart the same is cleared again.
 */
export type ClearedResults = Map<SessionKey, ReadonlySet<ResultKey>>;

export type PartialAnswer = { readonly text: string; readonly model: string };

export class Thread {
  readonly #options: ThreadOptions;
  #own: TranscriptEntry[] = [];
  #view: readonly TranscriptEntry[] = [];
  #history: readonly TranscriptEntry[] = [];
  #asked: ReadonlySet<MessageId> = new Set();
  #cleared: ReadonlySet<ResultKey> = new Set();
  #omitted = 0;
  #throughSeq = 0;
  #wasTainted = false;
  /** What the person has seen of the call that runs. */
  partial: PartialAnswer | undefined;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /**
   * `own` is what the store recorded of this turn, `asked` the messages the bus gave this try. What
   * an earlier try showed the model counts as consumed, whether or not the bus gave it out again.
   */
  open(
    history: readonly TranscriptEntry[],
    own: readonly TranscriptEntry[],
    asked: readonly MessageId[],
    isNoteTainted = false,
  ): void {
    this.#wasTainted = isNoteTainted;
    this.#own = [...own];
    this.#asked = new Set(asked);
    this.#history = history;
    this.consumed(shownThrough(own));
    this.#view = this.#wholeView();
    const { cleared, session } = this.#options;
    this.#cleared = clearedAmong(this.#view, cleared.get(session) ?? new Set());
  }

  /** The conversation was summed up meanwhile: `history` is what the store shows now. */
  reopen(history: readonly TranscriptEntry[]): void {
    this.#wasTainted = this.isTainted;
    this.#history = history;
    this.#omitted = 0;
    this.#view = this.#wholeView();
  }

  #wholeView(): readonly TranscriptEntry[] {
    const { turnId } = this.#options;
    return threadView(this.#history, this.#own, { turnId, asked: this.#asked });
  }

  /** Whether anything was said before this turn. */
  get hasEarlier(): boolean {
    const { turnId } = this.#options;
    return this.#history.some((entry) => 'turnId' in entry && entry.turnId !== turnId);
  }

  async record(
    entries: readonly TranscriptEntry[],
    options: { readonly durable: boolean },
  ): Promise<void> {
    if (entries.length === 0) return;
    // The model is shown what is written: the same now, in later calls and after a restart.
    const written = await this.#options.sessions.append(this.#options.session, entries, options);
    const kept = written.map(withoutWhole);
    this.#own.push(...kept);
    this.#view = [...this.#view, ...kept];
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

  /** What is recorded of this turn. */
  get own(): readonly TranscriptEntry[] {
    return this.#own;
  }

  get answers(): readonly AssistantEntry[] {
    return this.#own.filter((entry) => entry.role === 'assistant');
  }

  get results(): readonly ToolEntry[] {
    return this.#own.filter((entry) => entry.role === 'tool');
  }

  get spentTokens(): number {
    return tokensSpent(this.#own);
  }

  /** What the turn's answers called, oldest first. */
  get rounds(): readonly Round[] {
    return roundsOf(this.#own);
  }

  /** Texts this turn wrote for the person, oldest first; `last` is not recorded yet. */
  written(last?: string): readonly string[] {
    return writtenTexts(this.answers, last);
  }

  /** An answer of this turn was asked for anew. */
  get wasDoubted(): boolean {
    return this.answers.some(({ unsupported }) => unsupported !== undefined);
  }

  /** Whether a tool was called in this turn. */
  get hasCalls(): boolean {
    return this.answers.some(({ toolCalls }) => toolCalls.length > 0);
  }

  /** `answer`: only the end was not recorded; `draft`: the answer is still to be written. */
  get lastWord(): ReturnType<typeof lastWordOf> {
    return lastWordOf(this.#own);
  }

  /** Words of others stand in what the model is shown, or stood there earlier in this turn. */
  get isTainted(): boolean {
    return this.#wasTainted || this.#view.some((entry) => 'isForeign' in entry);
  }

  /** What came with the conversation's messages and was shown by tools, oldest first, each once. */
  get attached(): readonly AttachedMedia[] {
    const all = [...this.#history, ...this.#own].flatMap((entry) =>
      'media' in entry ? (entry.media ?? []) : [],
    );
    return [...new Map(all.map((one) => [`${one.media} ${one.name ?? ''}`, one])).values()];
  }

  /** What the model is shown, by who wrote it. */
  get knownTexts(): KnownTexts {
    return knownTextsOf(this.#view);
  }

  /** Messages that an earlier try showed the model and that are not among `asked`. */
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

  /** Calls of the newest answer that have no result yet, in order. */
  get openCalls(): readonly ToolCall[] {
    return openCallsOf(this.#own);
  }

  /** The place of a call of the newest answer among all calls of the turn: the same on a retry. */
  ordinalOf(call: ToolCall): number {
    const earlier = this.answers.slice(0, -1).flatMap((entry) => entry.toolCalls).length;
    return earlier + (this.answers.at(-1)?.toolCalls.findIndex(({ id }) => id === call.id) ?? 0);
  }

  /** What the conversation called before, oldest first; of the newest answer what stands before it. */
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

  /** `entries`: those of `shown`, or what stands for them; `offered`: the tools of the call. */
  messagesOf(entries: readonly TranscriptEntry[], offered: Offered): readonly ModelMessage[] {
    return shownMessages(entries, { ...this.#options, omitted: this.#omitted, offered });
  }

  /** What there is to show the model. */
  get shown(): readonly TranscriptEntry[] {
    if (this.#cleared.size === 0) return this.#view;
    return withCleared(this.#view, this.#cleared, this.#options.canReadBack());
  }

  /** Results that a line stands for. */
  get clearedResults(): number {
    return this.#cleared.size;
  }

  /** Leaves a line in place of the oldest results of tools; how many. */
  clear(aim: ClearingAim): number {
    const keys = resultsToClear(this.#view, this.#cleared, aim);
    this.#cleared = new Set([...this.#cleared, ...keys]);
    this.#options.cleared.set(this.#options.session, this.#cleared);
    return keys.length;
  }

  /** What the view takes at least where no text is shortened (uncorrected estimate). */
  get floorTokens(): number {
    return floorTokens(this.shown, this.#options.turnId);
  }

  /** Makes the view take at most `maxTokens`, and `keepTokens` where turns are left out. */
  shrink(maxTokens: number, keepTokens = maxTokens): void {
    const { turnId, canReadBack } = this.#options;
    this.#show(fitEntries(this.shown, turnId, maxTokens, canReadBack(), keepTokens));
  }

  /** Leaves out everything before this turn. */
  forgetHistory(): void {
    this.#show(onlyTurn(this.#view, this.#options.turnId));
  }

  #show(fitted: ReturnType<typeof fitEntries>): void {
    this.#wasTainted = this.isTainted;
    this.#view = fitted.entries;
    this.#omitted += fitted.omitted;
  }
}
