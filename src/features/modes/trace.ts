// What is kept of the decisions of a router and the work of a specialist, where that is wanted. It holds
// words of conversations, bounded; whoever writes it takes secrets out.

import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { ToolPlan } from './rules/route-decision.ts';

type About = {
  readonly at: number;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly model: string;
  readonly durationMs: number;
};

export type TraceRecord =
  | (About & {
      readonly kind: 'route';
      /** By which rung of the ladder; undefined: nothing usable was said. */
      readonly by: 'call' | 'json' | 'lenient' | 'rules' | 'none';
      readonly asked: string;
      readonly plan?: ToolPlan;
      /** What came of it, in a few words. */
      readonly outcome: string;
    })
  | (About & {
      readonly kind: 'specialist';
      readonly domain: string;
      readonly asked: string;
      readonly outcome: string;
    });

/** Of what was asked and of what came of it. */
export const MAX_ASKED_CHARS = 500;
export const MAX_OUTCOME_CHARS = 4000;
