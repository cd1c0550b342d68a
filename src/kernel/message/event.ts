// What a turn says while it runs. Events feed live replies, the terminal and the log; what must
// survive a crash is in the session file and on the bus, never only here.

import { headOf } from '../../lib/text/cut.ts';
import type { ToolFailureKind } from './errors.ts';
import type { CallId, MessageId, TurnId } from './ids.ts';
import type { ChatRef } from './message.ts';
import type { TokenUsage } from './transcript.ts';

export type AgentEvent =
  | { readonly type: 'thinking' }
  | { readonly type: 'text_delta'; readonly text: string }
  /** The text shown since the last model call began is withdrawn (the call starts again). */
  | { readonly type: 'text_discarded' }
  | {
      readonly type: 'tool_started';
      readonly callId: CallId;
      readonly name: string;
      readonly detail: string;
    }
  | {
      readonly type: 'tool_finished';
      readonly callId: CallId;
      /** `waiting`: an owner is asked for an approval; the call may run later. */
      readonly status: 'ok' | 'failed' | 'waiting';
      /** Left out where it is none, or of no kind. */
      readonly failure?: ToolFailureKind;
      readonly preview: string;
    }
  | {
      readonly type: 'model_called';
      readonly model: string;
      readonly usage?: TokenUsage;
      /** Tool calls it asked for, run or not. */
      readonly calls: number;
      /** It says that something was done which no tool did. */
      readonly isDoubted?: true;
    }
  /** A sentence for the person about the turn itself, e.g. that the model is being retried. */
  | { readonly type: 'notice'; readonly text: string };

const MAX_PREVIEW_CHARS = 120;

/** What a person sees of a tool's result beside the call. */
export const previewOf = (result: string): string =>
  headOf(result.split('\n', 1).join(''), MAX_PREVIEW_CHARS);

export type TurnOutcome = {
  readonly kind: 'answered' | 'stopped' | 'failed';
  /** Texts to send, in order; empty where there is nothing to say. */
  readonly answers: readonly string[];
  /** Highest bus sequence number consumed, steering included. */
  readonly throughSeq: number;
};

export type ToolActivity = {
  readonly callId: CallId;
  readonly name: string;
  readonly detail: string;
  readonly status: 'running' | 'ok' | 'failed' | 'waiting';
  /** First line of the result, cut; absent while it runs. */
  readonly preview?: string;
};

/** A whole picture of a turn in progress; a later one replaces an earlier one. */
export type LiveUpdate = {
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly replyTo?: MessageId;
  readonly phase: 'thinking' | 'writing' | 'tool' | 'ended';
  /** The answer so far, Markdown. */
  readonly markdown: string;
  readonly tools: readonly ToolActivity[];
  readonly notice?: string;
  /**
   * In the `ended` picture of a turn that came to its end: how, and how many answers follow. `moved`:
   * it goes on in another chat, and what this one shows of it is to be taken away.
   */
  readonly result?: { readonly kind: TurnOutcome['kind'] | 'moved'; readonly answers: number };
};
