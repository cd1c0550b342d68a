// The events of a chat, as the API sends them.

import type { UploadedFile } from './parts.tsx';
import type { ToolActivity } from './tool-steps.tsx';

export type Amendment = {
  readonly id: string;
  readonly kind: 'edited' | 'withdrawn' | 'again';
};

/** How a turn ended. */
export type TurnEnd = {
  readonly turn: string;
  readonly kind: 'answered' | 'stopped' | 'failed';
  /** How many answers follow. */
  readonly answers: number;
  readonly tools: readonly ToolActivity[];
};

export type Said = {
  readonly type: 'said';
  readonly seq: number;
  readonly id: string;
  readonly from: 'person' | 'agent';
  readonly replyTo?: string;
  readonly text: string;
  readonly at: number;
  readonly files?: readonly UploadedFile[];
  readonly choices?: readonly { readonly label: string; readonly token: string }[];
  readonly press?: string;
  readonly amends?: Amendment;
  readonly takesAway?: string;
  readonly replaced?: string;
  readonly closes?: string;
  readonly ended?: TurnEnd;
};

/** A running turn, as a difference to what this connection sent before. */
export type LiveDelta = {
  readonly type: 'live';
  readonly turnId: string;
  readonly phase: 'thinking' | 'writing' | 'tool' | 'ended';
  readonly keep: number;
  readonly append: string;
  readonly tools?: readonly ToolActivity[];
  readonly notice?: string;
  readonly result?: { readonly kind: TurnEnd['kind'] | 'moved'; readonly answers: number };
};

export type ChatEvent = Said | LiveDelta;
