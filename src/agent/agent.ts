// CONTRACT of the agent: one turn as an async generator of events that returns an outcome. Behind
// it, `perform` in perform.ts drives the pure state machine in rules/turn.ts.

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
import { t } from '../lib/texts.ts';
import type { TryPlace } from '../providers/provider.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { CompactionEngine } from './compaction-settings.ts';
import type { CompactionPolicy, ConversationSize } from './rules/compaction.ts';
import type { ContextReport } from './rules/context-fit.ts';
import type { Revisions } from './thread.ts';

/** A message that the agent answers, with its place in the session's order. */
export type TurnMessage = {
  readonly seq: number;
  readonly message: InboundMessage;
  /** The rights of its sender there. */
  readonly rights: Rights;
  /** It contains untrusted content. */
  readonly isForeign: boolean;
};

/** A call that needs an approval. */
export type CallToApprove = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** A few words about it, for the live preview. */
  readonly detail?: string;
  /** JSON, as parsed by the toolbox. */
  readonly arguments: string;
  /** The request in words for people; left out: the arguments, one per line. */
  readonly words?: RequestWords;
  /**
   * What the call depends on besides its arguments, e.g. hashes of files; an approval covers it
   * too.
   */
  readonly seal?: string;
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** An owner has ended the taint for now, so that allow rules apply. */
  readonly isTrusted?: true;
  /** The place of the call in its turn, the same on every retry. */
  readonly ordinal: number;
  /** What an allow rule would be bound to; left out: no rule is possible now. */
  readonly pattern?: string;
  /** What the rule would cover, for people; left out: exactly this call. */
  readonly scope?: string;
  /** The first approval applies to all later calls too. */
  readonly asksOnce?: boolean;
  /** When the message that the call serves arrived, epoch milliseconds. */
  readonly requestedAt?: number | undefined;
};

/**
 * `text`: for the model. `isWaiting`: the call may run later, after an approval. `isHere`: the
 * person who decides sees the question in this chat.
 */
export type AskedOwner = {
  readonly text: string;
  readonly isWaiting: boolean;
  readonly isHere?: boolean;
};

/** A letter: a text for somebody outside the conversation. */
export type LetterToPost = Pick<CallToApprove, 'rights' | 'isTainted' | 'ordinal'> & {
  readonly letter: Letter;
};

/** A question to the person of the chat. */
export type AskedPerson = Pick<CallToApprove, 'rights' | 'isTainted' | 'ordinal'> & {
  readonly question: PersonQuestion;
};

/** Sends a text, files or both to the chat before the turn's answer; once per `ordinal`. */
export type Say = (
  markdown: string,
  ordinal: number,
  attachments?: readonly OutboundAttachment[],
) => Promise<void>;

/** A call that an owner has approved. */
export type ApprovedCall = Omit<
  CallToApprove,
  'access' | 'ordinal' | 'words' | 'pattern' | 'scope' | 'asksOnce'
> & {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly person: TurnPerson;
  /** When it was requested, epoch milliseconds. */
  readonly at: number;
  readonly say: Say;
};

export type TurnSettings = {
  /** Model chosen for this session; undefined = the default. */
  readonly model?: string;
  /** Token budget for thinking; 0 = off. */
  readonly thinkingBudget: number;
  /** Chosen for this session; undefined = the configured one. */
  readonly mode?: AgentMode;
  /** Chosen for this session; undefined = the configured one. */
  readonly engine?: CompactionEngine;
  /** Epoch milliseconds until which taint alone requires no approval, by an owner's decision. */
  readonly trustedUntil?: number;
};

/** Limits of a turn beyond its rights and the limits of every turn. */
export type ConfinedLimits = {
  mayUse(tool: string): boolean;
  readonly maxRounds?: number;
  readonly maxTokens: number;
  readonly maxMs: number;
  /** Role of its model calls in figures about them; left out: `turn`. */
  readonly role?: string;
};

export type TurnInput = {
  readonly turnId: TurnId;
  /**
   * Epoch of the claim on the message bus: the end of the turn there writes the rest of its
   * entries. Left out: the turn is not on the bus and writes its end itself.
   */
  readonly epoch?: number;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  /** The person of the turn. */
  readonly person: TurnPerson;
  readonly messages: readonly [TurnMessage, ...TurnMessage[]];
  /** The narrowest rights of its messages. */
  readonly rights: Rights;
  readonly settings: TurnSettings;
  /**
   * Resolves when the person has probably finished writing; left out where that is so already.
   * Calls before it may be discarded.
   * @throws the signal's reason
   */
  settled?(signal: AbortSignal): Promise<void>;
  /**
   * Grows by calls that are abandoned before `settled`; the end of the turn records those of
   * earlier attempts.
   */
  readonly restarted?: SharedCall[];
  readonly turnLimits?: ConfinedLimits;
  /** Messages that arrived during the turn and steer it, taken before each model call. */
  steer(): Promise<readonly TurnMessage[]>;
  readonly say: Say;
  /**
   * Asks the call guards (kernel/guards.ts) about a call that needs an approval, durably; once per
   * `ordinal`. `run`: a guard allows it at once. Undefined: nobody can allow it.
   */
  judge(call: CallToApprove): Promise<'run' | AskedOwner | undefined>;
  /**
   * Sends a letter, or first shows it to an owner, durably; returns the text for the model. Once
   * per `ordinal`.
   */
  post(letter: LetterToPost): Promise<ToolOutcome>;
  /**
   * Asks the person, durably; returns the text for the model. The answer starts a later turn. Once
   * per `ordinal`.
   * @throws ToolError
   */
  ask(question: AskedPerson): Promise<string>;
};

/** Work done during the coalescing window: it depends on the session, not on the messages. */
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
  /** Runs a call exactly as it was approved, outside any turn. */
  runApproved(call: ApprovedCall, signal: AbortSignal): Promise<ToolOutcome>;
  /** What the next call of the session would contain; calls no model and changes nothing. */
  inspect(input: TurnInput): Promise<ContextReport>;
  /** Summarises what can be summarised now; charges `payer`. Returns the outcome. */
  compact(
    session: SessionKey,
    payer: Payer,
    chosen: Pick<TurnSettings, 'model' | 'engine'>,
  ): Promise<CompactionReport>;
  /** Records a reset of the conversation in the transcript. */
  reset(session: SessionKey): Promise<void>;
}

// CONTRACT of summaries of conversations.

export type CompactionRequest = {
  readonly session: SessionKey;
  /** The author of the newest message. */
  readonly payer: Payer;
  /** The model of the session. */
  readonly model: string;
  readonly policy: CompactionPolicy;
  readonly size: ConversationSize;
  /** Tokens of the newest turns that are kept verbatim; undefined: as the policy says. */
  readonly keepTokens?: number;
};

export type CompactionReport =
  | {
      readonly kind: 'compacted';
      /** Number of messages that a summary replaces now. */
      readonly messages: number;
      /** Estimated tokens of the conversation. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'nothing'; readonly tokens: number }
  /** `text`: for the person, where there is more to say. */
  | { readonly kind: 'failed'; readonly text?: string };

export interface Compactor extends AsyncDisposable {
  /** Starts a summary in the background, unless one failed lately. */
  inBackground(request: CompactionRequest): void;
  /** Joins a summary in progress. @throws the signal's reason */
  now(request: CompactionRequest, signal: AbortSignal): Promise<CompactionReport>;
  /** Reports that it took too long; no new attempt is made for a while. */
  rest(session: SessionKey): void;
  /** Whether it failed or took too long lately. */
  isResting(session: SessionKey): boolean;
}

// CONTRACT of the budget check: it is called before every attempt of a model call, including
// retries and fallbacks, and gets the usage of the attempt.

/** Roles of calls between turns, as figures about model calls name them. */
export type SideRole = 'compaction' | 'mail_summary' | 'reflection' | 'claim_check' | 'schedule';

export type PlannedCall = {
  readonly payer: Payer;
  /** The purpose, as figures about model calls name it. */
  readonly role: string;
  /** Left out between turns. */
  readonly turnId?: TurnId;
  /** As configured, with its prefix. */
  readonly model: string;
  /** Estimated input, and the requested maximum of the answer, in tokens. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** A money limit applies that is not a budget of the payer. */
  readonly countsMoney?: boolean;
  /** As in `TurnInput`: awaited first where the budget does not cover the call twice. */
  settled?(signal: AbortSignal): Promise<void>;
  /** The turn of a conversation, with its current rights; left out: the call is for none. */
  readonly turn?: TurnInput;
} & TryPlace;

export type CallEnd = (
  | { readonly kind: 'finished'; readonly usage?: TokenUsage; readonly answerTokens: number }
  /** `answerTokens`: estimate of what was streamed until then. */
  | { readonly kind: 'failed'; readonly failure: ProviderFailure; readonly answerTokens: number }
) & {
  /** Where the drift of the answer was measured. */
  readonly drift?: Drift;
};

/** The worst case of the call is held until it is settled. */
export type Reservation = {
  readonly kind: 'reserved';
  /** The longest answer that the budget covers. */
  readonly outputTokens: number;
  /** Call it once; further calls have no effect. */
  settle(end: CallEnd): void;
};

/** The call is not allowed; `text` is for the person. */
export type Refusal = {
  readonly kind: 'refused';
  readonly text: string;
  /** Left out: a budget. */
  readonly because?: 'local_only';
};

export interface SpendingGuard {
  /** Waits for calls in progress where only their end makes room. @throws the signal's reason */
  reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal>;
  /** The model to use now: `cheaper()` where a budget of the payer is almost used up. */
  modelFor(payer: Payer, model: string, cheaper: (model: string) => string): string;
}

/** A call of a paid service other than a model, outside of turns: transcription or speech. */
export type PaidCall = {
  readonly payer: Payer;
  /** Worst case, in millionths of the currency. */
  readonly micros: number;
};

export type PaidReservation = {
  readonly kind: 'reserved';
  /** With the cost in millionths; further calls have no effect. */
  settle(micros: number): void;
};

export interface PaidCalls {
  /** As `reserve`. @throws the signal's reason */
  reservePaid(call: PaidCall, signal: AbortSignal): Promise<PaidReservation | Refusal>;
  /** A refusal where the payer's conversation must not use a cloud service. */
  refusedElsewhere(payer: Payer): Promise<Refusal | undefined>;
}

/**
 * The budget of the day is used up, the model must not be used there, or a person decides about the
 * fallback (FALLBACK_ASKED and the other codes beside it).
 */
export class SpendingRefusedError extends NanobotError {
  override readonly name = 'SpendingRefusedError';
  /** For the person. */
  readonly text: string;
  readonly because: Refusal['because'];
  constructor({ text, because }: Omit<Refusal, 'kind'>, code = 'spending_refused') {
    const why = because === undefined ? t`the budget is used up` : t`the conversation stays local`;
    super(code, code === 'spending_refused' ? why : t`a person decides about the fallback`, {
      userText: text,
    });
    this.text = text;
    this.because = because;
  }
}
