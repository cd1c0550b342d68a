// The canonical record of a conversation: what session files contain and providers render. Fields
// are named as on disk; a provider only converts entries to its wire format.

import type { AttachedMedia } from './attachment.ts';
import type { ToolFailureKind } from './errors.ts';
import type { CallId, MessageId, ResultId, TurnId } from './ids.ts';

export type ToolCall = {
  readonly id: CallId;
  readonly name: string;
  /** Arguments as the model wrote them, JSON text; kept verbatim even if invalid. */
  readonly arguments: string;
};

/**
 * Thinking that its provider requires back unchanged (Anthropic signs it). Never shown in a chat.
 */
export type ThinkingBlock = { readonly text: string; readonly signature?: string };

export type TokenUsage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of `inputTokens` that was read from the provider's prompt cache. */
  readonly cachedTokens: number;
  /** Part of `inputTokens` that was written to it, if that has a price of its own; not recorded. */
  readonly writtenTokens?: number;
};

export type UserEntry = {
  readonly role: 'user';
  readonly turnId: TurnId;
  readonly messageId?: MessageId;
  /** The message's place in the session's order on the bus. */
  readonly seq?: number;
  readonly text: string;
  /** Its stored attachments; of these the model sees the images. */
  readonly media?: readonly AttachedMedia[];
  /** It contains untrusted content: while it is shown, the conversation is tainted. */
  readonly isForeign?: true;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type AssistantEntry = {
  readonly role: 'assistant';
  readonly turnId: TurnId;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** Written while working: the person sees another text, written after it. */
  readonly isDraft?: true;
  /** Sentences that claim an action which no tool did: a draft, requested again. */
  readonly unsupported?: readonly string[];
  readonly thinking: readonly ThinkingBlock[];
  readonly model: string;
  readonly usage?: TokenUsage;
  /** Highest bus sequence number among the turn's messages that the model saw for it. */
  readonly throughSeq?: number;
  /**
   * The fingerprint of the request in the request log; kernel/sessions/rules/request-records.ts.
   */
  readonly asked?: string;
  /** Written while untrusted content was in view: it does not taint, but no summary trusts it. */
  readonly isTainted?: true;
  readonly at: number;
};

export type ToolEntry = {
  readonly role: 'tool';
  readonly turnId: TurnId;
  readonly callId: CallId;
  readonly name: string;
  /** `unknown`: it was running when the process died; never run again automatically. */
  readonly status: 'ok' | 'failed' | 'unknown';
  readonly text: string;
  /** By which read_result finds it; results of older versions have none. */
  readonly resultId?: ResultId;
  /**
   * The whole of a result that is too long to be shown; `text` is then a briefing. Only on disk.
   */
  readonly whole?: string;
  /** Of a failed call: why. */
  readonly failure?: ToolFailureKind;
  /** It was not run, because it would have produced nothing new. */
  readonly isBlocked?: true;
  /** What the tool shows the model. */
  readonly media?: readonly AttachedMedia[];
  /** It contains untrusted content: while it is shown, the conversation is tainted. */
  readonly isForeign?: true;
  readonly at: number;
};

/** Replaces what was said before the turn `keepsFrom`, which may precede it in the record. */
export type SummaryEntry = {
  readonly role: 'summary';
  readonly text: string;
  /** The part derived from untrusted content; `text` is then derived from trusted entries only. */
  readonly untrusted?: string;
  /** The first turn that it does not cover; undefined: it replaces everything before it. */
  readonly keepsFrom?: TurnId;
  /** Its nodes, oldest first, if the lossless engine made it; `text` is then theirs. */
  readonly nodes?: readonly SummaryNode[];
  /** Messages that are neither in it nor after it: a new file was opened without them. */
  readonly omitted?: number;
  /** Attachments of the messages it covers; not shown, but they can be looked at again. */
  readonly media?: readonly AttachedMedia[];
  /**
   * It has an untrusted part, or is one as a whole (of earlier versions): while shown, it taints.
   */
  readonly isForeign?: true;
  readonly at: number;
};

/** The person started anew: the model sees nothing before it. */
type ResetEntry = { readonly role: 'reset'; readonly at: number };

/** The turn was undone: it stays on disk, and the model sees nothing of it. */
type UndoEntry = {
  readonly role: 'undo';
  readonly undoes: TurnId;
  /** The message that requested it. */
  readonly by: MessageId;
  readonly at: number;
};

/** What `/new` or `/undo` hid is visible again; the file that starts with it contains it. */
export type RestoreEntry = {
  readonly role: 'restore';
  /** Which of them, see kernel/sessions/rules/carry.ts. */
  readonly brings: string;
  /** The message that requested it. */
  readonly by: MessageId;
  readonly at: number;
};

/**
 * The turn is over. Its `answers` are reused if the process dies before they are on the bus, so
 * that the model is not called twice.
 */
export type TurnEndEntry = {
  readonly role: 'turn_end';
  readonly turnId: TurnId;
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answers: readonly string[];
  /** Highest bus sequence number this turn processed, including its followers. */
  readonly throughSeq: number;
  /** Model calls of the turn that no other entry contains. */
  readonly shared?: readonly SharedCall[];
  /** Stopped because an owner answers in the agent's place. */
  readonly isTakenOver?: true;
  readonly at: number;
};

/** A call of a model that shares the work of a turn. `role`: e.g. `router`. */
export type SharedCall = {
  readonly role: string;
  readonly model: string;
  readonly usage?: TokenUsage;
};

export type TranscriptEntry =
  | UserEntry
  | AssistantEntry
  | ToolEntry
  | SummaryEntry
  | ResetEntry
  | UndoEntry
  | RestoreEntry
  | TurnEndEntry;

/** What a model sees: the transcript after repair, without bookkeeping. */
export type ModelMessage =
  | {
      readonly role: 'user';
      readonly text: string;
      readonly images?: readonly AttachedMedia[];
      /** A note of the program, sent after it in this call only and never recorded. */
      readonly note?: string;
    }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly toolCalls: readonly ToolCall[];
      readonly thinking: readonly ThinkingBlock[];
    }
  | {
      readonly role: 'tool';
      readonly callId: CallId;
      readonly name: string;
      readonly text: string;
      readonly images?: readonly AttachedMedia[];
      readonly failed: boolean;
    };

// A node of lossless compaction as stored in a session file. agent/rules/lossless.ts works with
// nodes.

export const NODE_STYLES = ['details', 'points', 'cut'] as const;
/**
 * How its text was made: by a model that keeps details, by one that keeps points, or by cutting.
 */
export type NodeStyle = (typeof NODE_STYLES)[number];

export type SummaryNode = {
  /** Number of the first turn it covers. */
  readonly from: number;
  /** Number of the first turn after it. */
  readonly before: number;
  /** 0: of messages; else one more than the highest node it is made of. */
  readonly level: number;
  readonly style: NodeStyle;
  /** Number of messages it covers, if known. */
  readonly messages?: number;
  /** Ids of the nodes it was made of, oldest first. */
  readonly children?: readonly string[];
  readonly text: string;
  /** As in a summary. */
  readonly untrusted?: string;
  /** As in a summary. */
  readonly isForeign?: true;
};

// How far an answer has drifted, which decides whether its model rereads it.

export type DriftSignal =
  | 'filler_heavy'
  | 'repetitive'
  | 'babble'
  | 'hallucinated_output'
  | 'already_condensed'
  | 'loop';

export type Drift = {
  /** 0 to 1, in steps of a tenth. */
  readonly score: number;
  readonly signals: readonly DriftSignal[];
};
