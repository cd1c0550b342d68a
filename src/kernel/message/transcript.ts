// The canonical record of a conversation: what session files hold and what providers render. Fields
// are named as on disk; a provider turns entries into its wire form and nothing else.

import type { AttachedMedia } from './attachment.ts';
import type { ToolFailureKind } from './errors.ts';
import type { CallId, MessageId, ResultId, TurnId } from './ids.ts';

export type ToolCall = {
  readonly id: CallId;
  readonly name: string;
  /** Arguments as the model wrote them, JSON text; kept verbatim even where it does not parse. */
  readonly arguments: string;
};

/** Thinking that its provider wants back unchanged (Anthropic signs it). Never shown in a chat. */
export type ThinkingBlock = { readonly text: string; readonly signature?: string };

export type TokenUsage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of `inputTokens` that was read from the provider's prompt cache. */
  readonly cachedTokens: number;
  /** Part of `inputTokens` that was written to it, where that has a price of its own; not recorded. */
  readonly writtenTokens?: number;
};

export type UserEntry = {
  readonly role: 'user';
  readonly turnId: TurnId;
  readonly messageId?: MessageId;
  /** The message's place in the session's order on the bus. */
  readonly seq?: number;
  readonly text: string;
  /** What came with it and is stored; of these the model is shown the images. */
  readonly media?: readonly AttachedMedia[];
  /** It holds words of others: while it is shown, the conversation is tainted. */
  readonly isForeign?: true;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type AssistantEntry = {
  readonly role: 'assistant';
  readonly turnId: TurnId;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** Written while working: the person is shown another text, written after it. */
  readonly isDraft?: true;
  /** Sentences of it that tell of something done that no tool did: a draft, asked for anew. */
  readonly unsupported?: readonly string[];
  readonly thinking: readonly ThinkingBlock[];
  readonly model: string;
  readonly usage?: TokenUsage;
  /** Highest bus sequence number among the turn's messages that the model was shown for it. */
  readonly throughSeq?: number;
  /** Names what the model was asked with, which is kept beside the conversation; core/asked.ts. */
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
  /** `unknown`: it was running when the process died; never run again on its own. */
  readonly status: 'ok' | 'failed' | 'unknown';
  readonly text: string;
  /** By which read_result finds it; results of older programs have none. */
  readonly resultId?: ResultId;
  /** All of a result that is too long to be shown, where `text` is a briefing. Only on the disk. */
  readonly whole?: string;
  /** Of a failed call: why. */
  readonly failure?: ToolFailureKind;
  /** It was not run, because nothing new would have come of it. */
  readonly isBlocked?: true;
  /** What the tool shows the model. */
  readonly media?: readonly AttachedMedia[];
  /** It holds words of others: while it is shown, the conversation is tainted. */
  readonly isForeign?: true;
  readonly at: number;
};

/** Stands for what was said before the turn `keepsFrom`, which may stand before it in the record. */
export type SummaryEntry = {
  readonly role: 'summary';
  readonly text: string;
  /** The part that untrusted content had a share in; `text` is then made of trusted entries only. */
  readonly untrusted?: string;
  /** The first turn that it does not cover; undefined: it stands for everything before it. */
  readonly keepsFrom?: TurnId;
  /** What it is made of, oldest first, where the lossless engine made it; `text` is then theirs. */
  readonly nodes?: readonly SummaryNode[];
  /** Messages that neither stand in it nor follow it: a new file opened without them. */
  readonly omitted?: number;
  /** What came with the messages it covers; not shown, but it can be looked at again. */
  readonly media?: readonly AttachedMedia[];
  /** It has an untrusted part, or is one as a whole (of earlier versions): while shown, it taints. */
  readonly isForeign?: true;
  readonly at: number;
};

/** The person began anew: nothing before it is shown to the model. */
type ResetEntry = { readonly role: 'reset'; readonly at: number };

/** The turn was taken back: it stays on the disk, and the model is shown nothing of it. */
type UndoEntry = {
  readonly role: 'undo';
  readonly undoes: TurnId;
  /** The message that asked for it. */
  readonly by: MessageId;
  readonly at: number;
};

/** What `/new` or `/undo` took out of view is in view again; the file that begins with it holds it. */
export type RestoreEntry = {
  readonly role: 'restore';
  /** Which of them, see core/session/restore.ts. */
  readonly brings: string;
  /** The message that asked for it. */
  readonly by: MessageId;
  readonly at: number;
};

/**
 * The turn is over. Its `answers` are reused when the process dies before the bus heard of them, so
 * the model is not asked twice.
 */
export type TurnEndEntry = {
  readonly role: 'turn_end';
  readonly turnId: TurnId;
  readonly outcome: 'answered' | 'stopped' | 'failed';
  readonly answers: readonly string[];
  /** Highest bus sequence number this turn consumed, its followers included. */
  readonly throughSeq: number;
  /** Model calls of the turn that no other entry has. */
  readonly shared?: readonly SharedCall[];
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

/** What a model is shown: the transcript after repair, without bookkeeping. */
export type ModelMessage =
  | {
      readonly role: 'user';
      readonly text: string;
      readonly images?: readonly AttachedMedia[];
      /** Of ours, said behind it in this call alone and never recorded. */
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

// What a node of lossless compaction is, as it stands in a session file. What is done with nodes is in
// core/summary-nodes.ts.

export const NODE_STYLES = ['details', 'points', 'cut'] as const;
/** How its text was made: by a model that keeps details, by one that keeps points, or by cutting. */
export type NodeStyle = (typeof NODE_STYLES)[number];

export type SummaryNode = {
  /** Number of the first turn it stands for. */
  readonly from: number;
  /** Number of the first turn behind it. */
  readonly before: number;
  /** 0: of messages; else one more than the highest node it is made of. */
  readonly level: number;
  readonly style: NodeStyle;
  /** How many it stands for, where that is known. */
  readonly messages?: number;
  /** Ids of the nodes it was made of, oldest first. */
  readonly children?: readonly string[];
  readonly text: string;
  /** As in a summary. */
  readonly untrusted?: string;
  /** As in a summary. */
  readonly isForeign?: true;
};

// How far an answer is from one that is worth being read again by the model that wrote it.

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
