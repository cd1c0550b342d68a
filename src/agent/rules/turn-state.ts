// The vocabulary of a turn: one state per phase with only the data that phase needs, and the signals
// that may end each phase. The phase names the work that is due; `advance` in turn.ts moves on.

import type { TurnOutcome } from '../../kernel/message/message.ts';
import type { ToolCall } from '../../kernel/message/transcript.ts';

/** How the main model is asked in one call. */
export type MainCue = {
  /** `none`: it only writes; what is to be done, somebody else decides. */
  readonly tools: 'offered' | 'none';
  /** Told in this call alone and never recorded. */
  readonly notes: readonly string[];
};

export type NonEmpty<T> = readonly [T, ...T[]];

export type TurnLimits = {
  /** Model calls in which tools are offered. */
  readonly maxRounds: number;
  /** Tokens in and out over all calls of the turn. */
  readonly maxTokens: number;
  readonly maxMs: number;
};

/** A way out of a model call that failed for what was sent; each is taken once per turn. */
export type Recovery = 'overflow' | 'rejected';

export type Progress = {
  /** Model calls that ended. */
  readonly rounds: number;
  readonly tokens: number;
  readonly emptyAnswers: number;
  /** Texts that tools sent to the chat. */
  readonly messagesSent: number;
  /** Newest rounds in a row in which no call was run. */
  readonly blockedRounds: number;
  readonly recoveries: readonly Recovery[];
  /** The work is done: the answer itself is written by a call of its own. */
  readonly isDrafted?: true;
  /** Sentences of the answer that no tool bears out: it is asked for once more. */
  readonly unsupported?: readonly string[];
};

/** `loop`: the model asked only for calls that had been made before. */
export type TurnLimit = 'rounds' | 'tokens' | 'time' | 'loop';

/** What the next model call is for. */
export type Ask =
  | {
      readonly kind: 'work';
      /** Told to the model once few rounds are left. */
      readonly remainingRounds?: number;
    }
  /** The answer for the person, without tools, over all that was found out. */
  | { readonly kind: 'answer' }
  /** The answer once more, as it said what was not done; where it `mayAct`, that can be done now. */
  | {
      readonly kind: 'correct';
      readonly sentences: readonly string[];
      readonly mayAct: boolean;
    }
  /** One answer without tools, because `why` is used up, or because nothing new came of the calls. */
  | { readonly kind: 'conclude'; readonly why: TurnLimit };

/** Why a turn ends; `closingOf` in turn-closing.ts finds the words. */
export type Ending =
  | { readonly kind: 'answered'; readonly cut: boolean }
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'limit'; readonly limit: TurnLimit }
  /** `text` is what the person is told. */
  | { readonly kind: 'failed'; readonly text: string };

type PhaseData = {
  /** Read what is recorded, record the messages. */
  readonly preparing: unknown;
  /** Pause, then take the messages that came meanwhile. */
  readonly waiting: { readonly progress: Progress; readonly delayMs: number };
  /** Choose the model and see whether the thread fits it. */
  readonly routing: { readonly progress: Progress; readonly ask: Ask };
  /** Make the thread smaller. */
  readonly compacting: {
    readonly progress: Progress;
    readonly ask: Ask;
    readonly model: string;
    readonly cue?: MainCue | undefined;
    readonly pressure: 'estimate' | Recovery;
  };
  /** Ask the model. */
  readonly streaming: {
    readonly progress: Progress;
    readonly ask: Ask;
    readonly model: string;
    /** Undefined: with the tools of the turn. */
    readonly cue?: MainCue | undefined;
  };
  /** Run the tools that the model called. */
  readonly executing: { readonly progress: Progress; readonly calls: NonEmpty<ToolCall> };
  /** Record the end. */
  readonly finalizing: { readonly progress: Progress; readonly ending: Ending };
  readonly done: { readonly outcome: TurnOutcome };
};

type Phase = keyof PhaseData;
export type StateOf<P extends Phase> = { readonly phase: P } & PhaseData[P];
export type TurnState = { [P in Phase]: StateOf<P> }[Phase];
export type LivePhase = Exclude<Phase, 'done'>;
export type LiveState = { [P in LivePhase]: StateOf<P> }[LivePhase];
/** Phases that a stop, a deadline or a failed provider may break off; the others only record. */
export type InterruptibleState = Exclude<LiveState, { readonly phase: 'preparing' | 'finalizing' }>;

/** Where a turn takes up: a killed process may have left it anywhere. */
export type Resumption =
  | { readonly kind: 'ask' }
  | { readonly kind: 'calls'; readonly calls: NonEmpty<ToolCall> }
  /** All that is missing is the answer for the person. */
  | { readonly kind: 'drafted' }
  /** The answer says what was not done. */
  | { readonly kind: 'unsupported'; readonly sentences: readonly string[] }
  | { readonly kind: 'answered' };

type PhaseSignals = {
  readonly preparing:
    | {
        readonly type: 'prepared';
        /** Spent before the process died; 0 on the first try. */
        readonly rounds: number;
        readonly tokens: number;
        readonly messagesSent: number;
        readonly blockedRounds: number;
        readonly resumption: Resumption;
      }
    | { readonly type: 'already_over'; readonly outcome: TurnOutcome };
  readonly waiting: {
    readonly type: 'resumed';
    readonly elapsedMs: number;
    /** Messages came meanwhile. */
    readonly isSteered?: true;
  };
  readonly routing:
    | {
        readonly type: 'routed';
        readonly model: string;
        readonly size: 'fits' | 'too_large';
        /** What the call will take, its answer included. */
        readonly expectedTokens: number;
        readonly cue?: MainCue | undefined;
        /** What it took to find that out. */
        readonly tokens?: number;
      }
    /** Another model than the main one decided which tools are called. */
    | { readonly type: 'decided'; readonly calls: NonEmpty<ToolCall>; readonly tokens: number }
    /** Another model than the main one wrote the answer. */
    | { readonly type: 'spoken'; readonly tokens: number };
  readonly compacting: { readonly type: 'compacted' };
  readonly streaming:
    | {
        readonly type: 'answered';
        /** Whether this call, or only an earlier one of the turn, wrote text for the person. */
        readonly written: 'now' | 'earlier' | 'never';
        readonly stop: 'end' | 'length' | 'refused';
        readonly tokens: number;
        /** The person was not shown it. */
        readonly isDraft?: true;
        /** Sentences of it that no tool bears out. */
        readonly unsupported?: readonly string[];
      }
    | {
        readonly type: 'called';
        readonly calls: NonEmpty<ToolCall>;
        readonly tokens: number;
      }
    /** The provider would not take this thread; nothing was shown yet. */
    | { readonly type: 'not_taken'; readonly why: Recovery; readonly text: string };
  readonly executing: {
    readonly type: 'executed';
    readonly messagesSent: number;
    /** No call of the round was run. */
    readonly isBlocked: boolean;
  };
  readonly finalizing: { readonly type: 'recorded'; readonly outcome: TurnOutcome };
};

export type SignalOf<P extends LivePhase> = PhaseSignals[P];

/** What can break a phase off from outside. */
export type Interruption =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'time' }
  | { readonly kind: 'failed'; readonly text: string };
