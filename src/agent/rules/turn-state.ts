// The types of a turn: one state per phase with only the data that phase needs, and the signals
// that can end each phase. A phase names the work to do; `advance` in turn.ts moves on.

import type { TurnOutcome } from '../../kernel/message/message.ts';
import type { ToolCall } from '../../kernel/message/transcript.ts';

/** How the main model is called once. */
export type MainCue = {
  /** `none`: it only writes; another model decides what is done. */
  readonly tools: 'offered' | 'none';
  /** Sent in this call only and never recorded. */
  readonly notes: readonly string[];
};

export type NonEmpty<T> = readonly [T, ...T[]];

export type TurnLimits = {
  /** Number of model calls with tools. */
  readonly maxRounds: number;
  /** Tokens in and out over all calls of the turn. */
  readonly maxTokens: number;
  readonly maxMs: number;
};

/** A remedy for a model call that was rejected for its content; each is used once per turn. */
export type Recovery = 'overflow' | 'rejected';

export type Progress = {
  /** Number of ended model calls. */
  readonly rounds: number;
  readonly tokens: number;
  readonly emptyAnswers: number;
  /** Texts that tools sent to the chat. */
  readonly messagesSent: number;
  /** Newest consecutive rounds in which no call was run. */
  readonly blockedRounds: number;
  readonly recoveries: readonly Recovery[];
  /** The work is done: a separate call writes the answer. */
  readonly isDrafted?: true;
  /** Claims of the answer that no tool supports: the answer is requested once more. */
  readonly unsupported?: readonly string[];
};

/** `loop`: the model repeated only earlier calls. */
export type TurnLimit = 'rounds' | 'tokens' | 'time' | 'loop';

/** The purpose of the next model call. */
export type Ask =
  | {
      readonly kind: 'work';
      /** Sent to the model once few rounds are left. */
      readonly remainingRounds?: number;
    }
  /** The answer for the person, without tools, from all results. */
  | { readonly kind: 'answer' }
  /** The answer again, because it claimed what was not done; with `mayAct` that can be done now. */
  | {
      readonly kind: 'correct';
      readonly sentences: readonly string[];
      readonly mayAct: boolean;
    }
  /**
   * One answer without tools, because the limit `why` is reached, or because calls brought nothing
   * new.
   */
  | { readonly kind: 'conclude'; readonly why: TurnLimit };

/** `isTakenOver`: an owner answers instead, and nothing of the turn is sent. */
type Stopped = { readonly kind: 'stopped'; readonly isTakenOver?: true };

/** Why a turn ends; `closingOf` in turn-closing.ts gives the text. */
export type Ending =
  | { readonly kind: 'answered'; readonly cut: boolean }
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused' }
  | Stopped
  | { readonly kind: 'limit'; readonly limit: TurnLimit }
  /** `text`: the text for the person. */
  | { readonly kind: 'failed'; readonly text: string };

type PhaseData = {
  /** Read the recorded entries, record the messages. */
  readonly preparing: unknown;
  /** Pause, then take the messages that arrived meanwhile. */
  readonly waiting: { readonly progress: Progress; readonly delayMs: number };
  /** Choose the model and check whether the thread fits it. */
  readonly routing: { readonly progress: Progress; readonly ask: Ask };
  /** Make the thread smaller. */
  readonly compacting: {
    readonly progress: Progress;
    readonly ask: Ask;
    readonly model: string;
    readonly cue?: MainCue | undefined;
    readonly pressure: 'estimate' | Recovery;
  };
  /** Call the model. */
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
/** Phases that a stop, a deadline or a failed provider can interrupt; the others only record. */
export type InterruptibleState = Exclude<LiveState, { readonly phase: 'preparing' | 'finalizing' }>;

/** Where a turn resumes: a killed process may have left it anywhere. */
export type Resumption =
  | { readonly kind: 'ask' }
  | { readonly kind: 'calls'; readonly calls: NonEmpty<ToolCall> }
  /** Only the answer for the person is missing. */
  | { readonly kind: 'drafted' }
  /** The answer claims what was not done. */
  | { readonly kind: 'unsupported'; readonly sentences: readonly string[] }
  | { readonly kind: 'answered' };

type PhaseSignals = {
  readonly preparing:
    | {
        readonly type: 'prepared';
        /** Used before the process died; 0 on the first attempt. */
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
    /** Messages arrived meanwhile. */
    readonly isSteered?: true;
  };
  readonly routing:
    | {
        readonly type: 'routed';
        readonly model: string;
        readonly size: 'fits' | 'too_large';
        /** Expected tokens of the call, including its answer. */
        readonly expectedTokens: number;
        readonly cue?: MainCue | undefined;
        /** Tokens used for the decision. */
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
        /** It was not shown to the person. */
        readonly isDraft?: true;
        /** Claims in it that no tool supports. */
        readonly unsupported?: readonly string[];
      }
    | {
        readonly type: 'called';
        readonly calls: NonEmpty<ToolCall>;
        readonly tokens: number;
      }
    /** The provider rejected this thread; nothing was shown yet. */
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

/** What can interrupt a phase from outside. */
export type Interruption =
  | Stopped
  | { readonly kind: 'time' }
  | { readonly kind: 'failed'; readonly text: string };
