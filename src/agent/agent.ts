// CONTRACT of the agent: one turn as an async generator of events that returns an outcome. The loop
// behind it is `perform(phase)` against the pure state machine in core/turn.ts.

import type { Letter } from '../features/letters/rules/letter.ts';
import type { AgentMode } from '../features/modes/rules/mode.ts';
import type { Payer } from '../features/spending/rules/budget-limits.ts';
import type { PersonQuestion } from '../kernel/access/person.ts';
import type { Rights, ToolAccess } from '../kernel/access/rights.ts';
import type { OutboundAttachment } from '../kernel/message/attachment.ts';
import type { AgentEvent, TurnOutcome } from '../kernel/message/event.ts';
import type { SessionKey, TurnId } from '../kernel/message/ids.ts';
import type { ChatRef, InboundMessage } from '../kernel/message/message.ts';
import type { TurnPerson } from '../kernel/message/notes.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { CompactionReport } from './compaction.ts';
import type { Revisions } from './revise.ts';
import type { CompactionEngine } from './rules/compaction.ts';
import type { ContextReport } from './rules/context-fit.ts';

/** A message the agent is to answer, with its place in the session's order. */
export type TurnMessage = {
  readonly seq: number;
  readonly message: InboundMessage;
  /** What whoever sent it may have done there. */
  readonly rights: Rights;
  /** It holds words of others. */
  readonly isForeign: boolean;
};

/** A call that an owner has to allow. */
export type CallToApprove = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** What it is about, in few words, for the live view. */
  readonly detail?: string;
  /** JSON, as the toolbox understood it. */
  readonly arguments: string;
  /** What it stands on beside them; the yes is for that as well. */
  readonly seal?: string;
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** The place of the call in its turn, the same on every retry. */
  readonly ordinal: number;
  /** What a yes that is not for once would be bound to; left out: there is none for it, now. */
  readonly pattern?: string;
};

/** `text`: for the model. `isWaiting`: the call may run later, after an approval. */
export type AskedOwner = { readonly text: string; readonly isWaiting: boolean };

/** A text for somebody outside the conversation. */
export type LetterToPost = Pick<CallToApprove, 'rights' | 'isTainted' | 'ordinal'> & {
  readonly letter: Letter;
};

/** What the person of the chat is asked. */
export type AskedPerson = Pick<CallToApprove, 'rights' | 'isTainted' | 'ordinal'> & {
  readonly question: PersonQuestion;
};

/** Sends a text, files or both to the chat before the turn's answer; the same `ordinal` sends once. */
export type Say = (
  markdown: string,
  ordinal: number,
  attachments?: readonly OutboundAttachment[],
) => Promise<void>;

/** A call that an owner has allowed. */
export type ApprovedCall = Omit<CallToApprove, 'access' | 'ordinal' | 'pattern'> & {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly person: TurnPerson;
  /** When it was asked for, epoch milliseconds. */
  readonly at: number;
  readonly say: Say;
};

export type TurnSettings = {
  /** Model chosen for this session; undefined = the default. */
  readonly model?: string;
  /** Tokens to think; 0 = off. */
  readonly thinkingBudget: number;
  /** Chosen for this session; undefined = the configured one. */
  readonly mode?: AgentMode;
  /** Chosen for this session; undefined = the configured one. */
  readonly engine?: CompactionEngine;
};

/** What a turn is held to beside its rights and the limits of every turn. */
export type Confines = {
  mayUse(tool: string): boolean;
  readonly maxRounds?: number;
  readonly maxTokens: number;
  readonly maxMs: number;
  /** What its model calls are for, in figures about them; left out: `turn`. */
  readonly role?: string;
};

export type TurnInput = {
  readonly turnId: TurnId;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  /** Whose turn it is. */
  readonly person: TurnPerson;
  readonly messages: readonly [TurnMessage, ...TurnMessage[]];
  /** The narrowest of its messages. */
  readonly rights: Rights;
  readonly settings: TurnSettings;
  readonly confines?: Confines;
  /** Messages that came meanwhile and steer the turn, taken before each model call. */
  steer(): Promise<readonly TurnMessage[]>;
  readonly say: Say;
  /**
   * Whether an owner has allowed just this for longer than once; then it is entered as begun. Left
   * out: they are asked each time.
   */
  isAllowed?(call: CallToApprove): Promise<boolean>;
  /** Asks an owner for an approval, durably. The same `ordinal` asks once. */
  askOwner(call: CallToApprove): Promise<AskedOwner>;
  /**
   * Sends a text to somebody else, or shows it to an owner first, durably; what to tell the model.
   * The same `ordinal` is posted once.
   */
  post(letter: LetterToPost): Promise<ToolOutcome>;
  /**
   * Asks the person, durably; what to tell the model. Their answer begins a later turn. The same
   * `ordinal` asks once. @throws ToolError
   */
  ask(question: AskedPerson): Promise<string>;
};

/** Work done inside the coalescing window: it depends on the session, not on the messages. */
export interface PreparedContext {
  readonly session: SessionKey;
}

export interface Agent extends Revisions {
  prepare(session: SessionKey, chat: ChatRef, person: TurnPerson): Promise<PreparedContext>;
  run(
    input: TurnInput,
    context: PreparedContext,
    signal: AbortSignal,
  ): AsyncGenerator<AgentEvent, TurnOutcome, void>;
  /** Runs a call exactly as it was allowed, outside any turn. */
  runApproved(call: ApprovedCall, signal: AbortSignal): Promise<ToolOutcome>;
  /** What the next call of the session would take; nothing is asked or changed. */
  inspect(input: TurnInput): Promise<ContextReport>;
  /** Sums up what can be summed up now; `payer` is charged. What came of it. */
  compact(
    session: SessionKey,
    payer: Payer,
    /** Of the conversation; undefined = the default. */
    model: string | undefined,
    /** The same. */
    engine: CompactionEngine | undefined,
  ): Promise<CompactionReport>;
  /** Shows the person's new start in the transcript. */
  reset(session: SessionKey): Promise<void>;
}
