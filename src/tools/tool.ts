// CONTRACT of a tool. Adding one is a file and a line in tools/index.ts. Every tool passes
// test/contract/tool.ts.

import type { z } from 'zod';
import type { SessionKey, TurnId } from '../core/ids.ts';
import type { ChatRef } from '../core/message.ts';
import type { ToolAccess } from '../core/rights.ts';
import type { Clock } from '../lib/clock.ts';
import type { ToolSpec } from '../providers/provider.ts';

export type ToolContext = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Absolute path of the folder that file tools are confined to. */
  readonly workspace: string;
  /** Sends a text to the current chat at once; the same `ordinal` sends once. */
  say(markdown: string): Promise<void>;
};

export type Tool<Input = unknown> = {
  readonly name: string;
  readonly description: string;
  /** When to use it and when not; goes into the system prompt. */
  readonly guidance?: string;
  /** What it does to the world. */
  readonly access: ToolAccess;
  /** The address on the net that this call asks. */
  urlOf?(input: Input): string;
  /** Its result holds words of others. */
  readonly taints?: boolean;
  readonly input: z.ZodType<Input>;
  /** Short text for people that says what a call is about, e.g. the path. */
  describe(input: Input): string;
  /** The result text for the model. @throws ToolError */
  run(input: Input, context: ToolContext): Promise<string>;
};

/** `text` is no longer than the toolbox's limit. */
export type ToolOutcome = { readonly status: 'ok' | 'failed'; readonly text: string };

/** A call after lookup, coercion and validation; `run` never throws. */
export type BoundCall =
  | {
      readonly kind: 'ready';
      readonly name: string;
      readonly access: ToolAccess;
      readonly detail: string;
      run(context: ToolContext): Promise<ToolOutcome>;
    }
  /** Unknown tool or bad input; `outcome` explains the valid shape to the model. */
  | { readonly kind: 'refused'; readonly name: string; readonly outcome: ToolOutcome };

export interface Toolbox {
  readonly specs: readonly ToolSpec[];
  /** The guidance of all tools, for the system prompt. */
  readonly guidance: string;
  /** `argumentsJson` is the model's text, verbatim. */
  bind(name: string, argumentsJson: string): BoundCall;
}
