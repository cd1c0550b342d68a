// Asks the supervisor what happens next: structured output, without any tool. What it says is held against
// those there are; what makes no sense ends its work.

import { textTokens } from '../../agent/rules/tokens.ts';
import { askRole, payerOf } from './ask-role.ts';
import type { Speaker } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';
import type { SupervisedTurn } from './rules/supervised-turn.ts';
import {
  type Move,
  type Roster,
  readMove,
  supervisorQuestion,
  supervisorSystem,
} from './rules/supervisor-prompts.ts';
import type { SupervisorConfig } from './settings.ts';
import { markForeign, speakerOf } from './supervisor-words.ts';

export type SupervisorAsk = {
  readonly state: SupervisedTurn;
  readonly roster: Roster;
  /** Steps that may still be taken. */
  readonly left: number;
  readonly health: RoleHealth;
  readonly settings: SupervisorConfig;
  readonly orders: string;
};

export type Decided =
  | { readonly kind: 'moved'; readonly move: Move; readonly by?: Speaker; readonly tokens: number }
  /** It does not answer; `isOut`: from now on it is left alone for a while. */
  | { readonly kind: 'left'; readonly isOut: boolean; readonly who: RoleModel };

/** What a supervisor that understands its orders does not say. */
const USELESS: readonly string[] = ['unreadable', 'unknown'];

/** @throws SpendingRefusedError, or the reason of the signal */
export async function askSupervisor(
  turn: ModeTurn,
  { state, roster, left, health, settings, orders }: SupervisorAsk,
  signal: AbortSignal,
): Promise<Decided> {
  const main = turn.input.settings.model ?? turn.models.defaultModel;
  const who = { role: 'supervisor', model: settings.model || main } as const;
  if (health.isResting(who)) return { kind: 'left', isOut: false, who };
  const call = {
    system: supervisorSystem(orders, roster),
    messages: [
      {
        role: 'user',
        text: supervisorQuestion(state, turn.prepared.history, { left }, markForeign),
      },
    ] as const,
    tools: [],
    maxTokens: settings.maxTokens,
    temperature: settings.temperature,
    timeoutMs: settings.timeoutSecs * 1000,
  };
  const asked = await askRole(turn, { health, who }, call, signal);
  if (asked.kind === 'failed') return { kind: 'left', isOut: asked.isOut, who };
  const { answer } = asked;
  const agents = roster.agents.map(({ name }) => name);
  const move = readMove(answer.text, state, { agents, services: roster.services });
  const isUsable = move.kind !== 'finish' || !USELESS.includes(move.why);
  if (isUsable) health.succeeded(who, payerOf(turn));
  else health.failed(who, payerOf(turn), 'useless');
  const { usage } = answer;
  const tokens =
    usage === undefined ? textTokens(answer.text) : usage.inputTokens + usage.outputTokens;
  return { kind: 'moved', move, by: speakerOf(answer), tokens };
}
