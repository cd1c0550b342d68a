// CONTRACT of what a call takes of a model's context window, for people to see.

import type { NodeStyle } from './summary-nodes.ts';

/** Counts are tokens, corrected by what the provider counted before. */
export type ContextReport = {
  readonly model: string;
  /** Of the model, or less where the configuration says so. */
  readonly contextTokens: number;
  /** Above this the oldest is left out; the rest of the window is for the answer. */
  readonly inputTokens: number;
  /** Above this the conversation is summed up; undefined where that is switched off. */
  readonly summedUpAbove: number | undefined;
  /** The system prompt, part by part. */
  readonly prompt: readonly { readonly name: string; readonly tokens: number }[];
  readonly tools: {
    readonly count: number;
    readonly tokens: number;
    /** For lack of room. */
    readonly leftOut: number;
  };
  /** The summary of what came before; 0: there is none. */
  readonly summary: number;
  /** What it is made of; empty where it is one text. */
  readonly nodes: readonly {
    readonly id: string;
    readonly style: NodeStyle;
    readonly tokens: number;
  }[];
  /** What the conversation came to before it; 0: nothing is told of that. */
  readonly working: number;
  readonly conversation: { readonly messages: number; readonly tokens: number };
  readonly images: number;
  /** Results of tools that a line stands for by now. */
  readonly cleared: number;
  /** Entries of the conversation that are left out or shown in fewer words than they have. */
  readonly rewritten: number;
  readonly total: number;
  /** Whether a provider has counted for this model, so that the estimates are corrected. */
  readonly isCorrected: boolean;
};
