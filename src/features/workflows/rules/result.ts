// What carrying out a step of a workflow may come to; core/workflow/state.ts says what each makes of the state.

import type { JsonObject } from '../../../kernel/config/json.ts';
import type { Ballot } from '../../subagents/rules/vote.ts';

/** What one voter of a step said; the value where it is a vote. */
export type Cast = {
  readonly voter: number;
  readonly ballot: Ballot;
  readonly value?: JsonObject;
};

export type Spent = { readonly tokens: number; readonly micros: number };

export type StepResult =
  /** It is about to be carried out. */
  | { readonly kind: 'begun'; readonly isEffectful: boolean }
  /** The answer of a model, which fits the schema. */
  | {
      readonly kind: 'skill';
      readonly value: JsonObject;
      readonly isForeign: boolean;
      readonly spent: Spent;
    }
  /** One voter of several has answered. */
  | { readonly kind: 'cast'; readonly cast: Cast; readonly spent: Spent }
  /** Nobody won the vote: why. */
  | { readonly kind: 'undecided'; readonly error: string; readonly isForeign: boolean }
  | { readonly kind: 'tool'; readonly text: string; readonly isForeign: boolean }
  /** `isForeign`: the reason may hold words of others. */
  | {
      readonly kind: 'failed';
      readonly error: string;
      readonly mayRetry: boolean;
      readonly isForeign?: boolean;
      readonly spent?: Spent;
    }
  /** An owner is asked. */
  | { readonly kind: 'waiting'; readonly approval: string }
  /** The process was killed while it ran. */
  | { readonly kind: 'broken_off' };
