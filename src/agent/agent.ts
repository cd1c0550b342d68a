// CONTRACT of the agent: one turn as an async generator of events that returns an outcome. The loop
// behind it is `perform(phase)` against the pure state machine in core/turn.ts.

import type { PersonQuestion } from '../kernel/access/person.ts';
import type { Rights, ToolAccess } from '../kernel/access/rights.ts';
import type { AgentMode } from '../kernel/config/settings-fields.ts';
import type { OutboundAttachment } from '../kernel/message/attachment.ts';
import { NanobotError, type ProviderFailure } from '../kernel/message/errors.ts';
import type { SessionKey, TurnId } from '../kernel/message/ids.ts';
import type {
  AgentEvent,
  ChatRef,
  InboundMessage,
  Letter,
  Payer,
  TurnOutcome,
} from '../kernel/message/message.ts';
import type { Drift, SharedCall, TokenUsage } from '../kernel/message/transcript.ts';
import type { TurnPerson } from '../kernel/message/untrusted.ts';
import type { RequestWords } from '../kernel/questions/rules/question-text.ts';
import type { TryPlace } from '../providers/provider.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { CompactionEngine } from './compaction-settings.ts';
import type { CompactionPolicy, ConversationSize } from './rules/compaction.ts';
import type { ContextReport } from './rules/context-fit.ts';
import type { Revisions } from './thread.ts';

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
  /** The same for people; left out: the arguments, a line each. */
  readonly words?: RequestWords;
  /** What it stands on beside them; the yes is for that as well. */
  readonly seal?: string;
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** An owner has ended the taint for now: allow rules count. */
  readonly isTrusted?: true;
  /** The place of the call in its turn, the same on every retry. */
  readonly ordinal: number;
  /** What a yes that is not for once would be bound to; left out: there is none for it, now. */
  readonly pattern?: string;
  /** What that covers, for people; left out: exactly this call. */
  readonly scope?: string;
  /** The first approval is meant for all later calls too. */
  readonly asksOnce?: boolean;
  /** When the message arrived that the call serves, epoch milliseconds. */
  readonly requestedAt?: number | undefined;
};

/**
 * `text`: for the model. `isWaiting`: the call may run later, after an approval. `isHere`: who is asked sees it
 * in this chat.
 */
export type AskedOwner = {
  readonly text: string;
  readonly isWaiting: boolean;
  readonly isHere?: boolean;
};

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
export type ApprovedCall = Omit<
  CallToApprove,
  'access' | 'ordinal' | 'words' | 'pattern' | 'scope' | 'asksOnce'
> & {
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
  /** Until then, epoch milliseconds, taint alone asks for no approval: an owner said so. */
  readonly trustedUntil?: number;
};

/** What a turn is held to beside its rights and the limits of every turn. */
export type ConfinedLimits = {
  mayUse(tool: string): boolean;
  readonly maxRounds?: number;
  readonly maxTokens: number;
  readonly maxMs: number;
  /** What its model calls are for, in figures about them; left out: `turn`. */
  readonly role?: string;
};

export type TurnInput = {
  readonly turnId: TurnId;
  /**
   * Of the claim on the bus: with the turn's end there the rest of its entries is written. Left out: the
   * turn is none of the bus, and writes its end itself.
   */
  readonly epoch?: number;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  /** Whose turn it is. */
  readonly person: TurnPerson;
  readonly messages: readonly [TurnMessage, ...TurnMessage[]];
  /** The narrowest of its messages. */
  readonly rights: Rights;
  readonly settings: TurnSettings;
  /**
   * Resolves when the person has likely finished writing; left out where that is so already. Calls before it may have
   * been made in vain. @throws the signal's reason
   */
  settled?(signal: AbortSignal): Promise<void>;
  /** Grows by the calls that are given up before `settled`; its end records those of the tries before. */
  readonly restarted?: SharedCall[];
  readonly turnLimits?: ConfinedLimits;
  /** Messages that came meanwhile and steer the turn, taken before each model call. */
  steer(): Promise<readonly TurnMessage[]>;
  readonly say: Say;
  /**
   * Asks the call guards (kernel/guards.ts) about a call that an owner has to allow, durably; the same `ordinal` once.
   * `run`: one of them allows it at once. Undefined: nobody can allow it.
   */
  judge(call: CallToApprove): Promise<'run' | AskedOwner | undefined>;
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

// CONTRACT of summing up conversations: what is asked for, and what came of it.

export type CompactionRequest = {
  readonly session: SessionKey;
  /** Whoever wrote last. */
  readonly payer: Payer;
  /** The model of the conversation. */
  readonly model: string;
  readonly policy: CompactionPolicy;
  readonly size: ConversationSize;
  /** Of the newest turns, to be left as they are; undefined: as the policy says. */
  readonly keepTokens?: number;
};

export type CompactionReport =
  | {
      readonly kind: 'compacted';
      /** Messages that a summary stands for now. */
      readonly messages: number;
      /** Of the conversation, estimated. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'nothing'; readonly tokens: number }
  /** `text`: for the person, where there is more to say. */
  | { readonly kind: 'failed'; readonly text?: string };

export interface Compactor extends AsyncDisposable {
  /** Soon, unless it failed lately; nobody waits for it. */
  inBackground(request: CompactionRequest): void;
  /** Joins one that is under way. @throws the signal's reason */
  now(request: CompactionRequest, signal: AbortSignal): Promise<CompactionReport>;
  /** It took too long for whoever waited: not tried again for a while. */
  rest(session: SessionKey): void;
  /** Whether it failed or took too long lately. */
  isResting(session: SessionKey): boolean;
}

// CONTRACT of what watches over the money: asked before every try of a model call, retries and
// fallbacks included, and told what the try took.

/** What a call between turns is for, as figures about model calls name it. */
export type SideRole = 'compaction' | 'mail_summary' | 'reflection' | 'claim_check';

export type PlannedCall = {
  readonly payer: Payer;
  /** What for, as figures about model calls name it. */
  readonly role: string;
  /** Left out between turns. */
  readonly turnId?: TurnId;
  /** As configured, with its prefix. */
  readonly model: string;
  /** Estimates: the question, and the longest answer that was asked for. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** A limit in money counts for it that is no budget of the payer. */
  readonly countsMoney?: boolean;
  /** As in `TurnInput`: awaited first where the budget does not cover the call twice. */
  settled?(signal: AbortSignal): Promise<void>;
} & TryPlace;

export type CallEnd = (
  | { readonly kind: 'finished'; readonly usage?: TokenUsage; readonly answerTokens: number }
  /** `answerTokens`: estimate of what was streamed until then. */
  | { readonly kind: 'failed'; readonly failure: ProviderFailure; readonly answerTokens: number }
) & {
  /** Where somebody looked at what was answered. */
  readonly drift?: Drift;
};

/** The worst case of the call is held back until it is settled. */
export type Reservation = {
  readonly kind: 'reserved';
  /** The longest answer for which there is room. */
  readonly outputTokens: number;
  /** Once; a second time changes nothing. */
  settle(end: CallEnd): void;
};

/** No call may be made; `text` is for the person. */
export type Refusal = {
  readonly kind: 'refused';
  readonly text: string;
  /** Left out: a budget. */
  readonly because?: 'local_only';
};

export interface SpendingGuard {
  /** Waits for calls under way where there is room only after them. @throws the signal's reason */
  reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal>;
  /** The model to ask now: `cheaper()` where a budget of the payer is almost used up. */
  modelFor(payer: Payer, model: string, cheaper: (model: string) => string): string;
}

/** A call of a paid service that is no model, outside of turns: sound to words, words to sound. */
export type PaidCall = {
  readonly payer: Payer;
  /** At worst, in millionths of the currency. */
  readonly micros: number;
};

export type PaidReservation = {
  readonly kind: 'reserved';
  /** With what it took, in millionths; once, a second time changes nothing. */
  settle(micros: number): void;
};

export interface PaidCalls {
  /** As `reserve`. @throws the signal's reason */
  reservePaid(call: PaidCall, signal: AbortSignal): Promise<PaidReservation | Refusal>;
  /** Where nothing of the payer's conversation may go to a service. */
  refusedElsewhere(payer: Payer): Promise<Refusal | undefined>;
}

/** The budget of today is used up, or the model must not be asked there. */
export class SpendingRefusedError extends NanobotError {
  override readonly name = 'SpendingRefusedError';
  /** For the person. */
  readonly text: string;
  readonly because: Refusal['because'];
  constructor({ text, because }: Omit<Refusal, 'kind'>) {
    const why = because === undefined ? 'the budget is used up' : 'the conversation stays local';
    super('spending_refused', why, { userText: text });
    this.text = text;
    this.because = because;
  }
}
