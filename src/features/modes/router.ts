// Asks the router for the next step and makes a plan of what it says, held against what the turn really
// has; where nothing usable is said, plain rules stand in.

import { ownWords, routerDirective, routerQuestion } from '../../agent/rules/context-pack.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { ToolSpec } from '../../providers/provider.ts';
import { askRole, payerOf, type RoleAnswer, type RoleCall } from './ask-role.ts';
import type { Speaker } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';
import {
  type PlannedCall,
  type ReadPlan,
  ROUTE_ACTIONS,
  type RouteDecision,
  readPlan,
  SPECIALIST,
  type ToolPlan,
} from './rules/route-decision.ts';
import { fallbackDecision, type ReadDecision, readDecision } from './rules/route-parse.ts';
import type { TrioConfig } from './settings.ts';
import { MAX_ASKED_CHARS, type TraceRecord } from './trace.ts';

type RouterDeps = {
  readonly health: RoleHealth;
  readonly who: RoleModel;
  readonly settings: TrioConfig;
  trace(record: TraceRecord): void;
};

type Usable = Exclude<ReadPlan, { readonly kind: 'invalid' }>;

export type Routed =
  | {
      readonly kind: 'planned';
      readonly plan: Usable;
      readonly by: Speaker;
      readonly tokens: number;
    }
  /** To the main model and its tools; `isOut`: from now on the router is left alone for a while. */
  | { readonly kind: 'left'; readonly isOut: boolean; readonly tokens: number };

const ROUTE_DECISION: ToolSpec = {
  name: 'route_decision',
  description: 'The one next step.',
  schema: {
    type: 'object',
    properties: {
      action: { type: 'string', enum: [...ROUTE_ACTIONS] },
      target: { type: 'string', description: 'Name of the tool, or domain of the specialist.' },
      args: { type: 'object', description: 'Arguments of the tool, or task, steps, question.' },
      confidence: { type: 'number', minimum: 0, maximum: 1 },
    },
    required: ['action', 'confidence'],
  },
};

type Means = { readonly specs: readonly ToolSpec[]; readonly hasSpecialist: boolean };
type Checked = { readonly plan: ToolPlan; readonly read: ReadPlan };
type Chosen = {
  readonly by: ReadDecision['by'] | 'rules';
  readonly plan: ToolPlan;
  readonly read: Usable;
};

/** @throws SpendingRefusedError, or the reason of the signal */
export async function askRouter(
  turn: ModeTurn,
  deps: RouterDeps,
  signal: AbortSignal,
): Promise<Routed> {
  const { settings, health, who } = deps;
  const started = turn.clock.monotonic();
  const means = {
    specs: turn.toolbox.offered(turn.rights.current).specs,
    hasSpecialist: mayAskSpecialist(deps),
  };
  const asked = await askRole(turn, deps, requestOf(turn, settings, means), signal);
  const durationMs = Math.round(turn.clock.monotonic() - started);
  if (asked.kind === 'failed') {
    note(turn, deps, durationMs, undefined, 'did not answer');
    return { kind: 'left', isOut: asked.isOut, tokens: 0 };
  }
  const tokens = tokensOf(asked.answer);
  const said = saidBy(turn, asked.answer, means);
  const isOut = said === undefined && health.failed(who, payerOf(turn), 'useless');
  if (said !== undefined) health.succeeded(who, payerOf(turn));
  const chosen = said ?? (settings.fallback ? ruled(turn, means) : undefined);
  if (chosen === undefined || chosen.plan.confidence < settings.minConfidence) {
    note(turn, deps, durationMs, chosen, 'left to the main model');
    return { kind: 'left', isOut, tokens };
  }
  note(turn, deps, durationMs, chosen, chosen.read.kind);
  return { kind: 'planned', plan: chosen.read, by: speakerOf(asked.answer), tokens };
}

function mayAskSpecialist({ settings, health }: RouterDeps): boolean {
  const { model } = settings.specialist;
  return model !== '' && !health.isResting({ role: SPECIALIST, model });
}

function requestOf(
  { prepared, thread }: ModeTurn,
  { router }: TrioConfig,
  { specs, hasSpecialist }: Means,
): RoleCall {
  const maySpawn = specs.some(({ name }) => name === 'spawn');
  return {
    system: routerDirective({ tools: specs, hasSpecialist, maySpawn }),
    messages: [{ role: 'user', text: routerQuestion(prepared.history, thread.own) }],
    tools: [ROUTE_DECISION],
    maxTokens: router.maxTokens,
    temperature: router.temperature,
    timeoutMs: router.timeoutSecs * 1000,
  };
}

/** What the router said, where that can be done. */
function saidBy(turn: ModeTurn, answer: RoleAnswer, means: Means): Chosen | undefined {
  const calls = answer.toolCalls.map((call) => call.arguments);
  const read = readDecision({ calls, text: answer.text });
  return read === undefined ? undefined : usable(checked(turn, read.decision, means), read.by);
}

function ruled(turn: ModeTurn, means: Means): Chosen | undefined {
  // What the first step was, the words still say: rules would say it again.
  if (turn.thread.hasCalls) return undefined;
  const tools = new Set(means.specs.map(({ name }) => name));
  const { local } = turn.models.resolve(turn.input.settings.model ?? turn.models.defaultModel);
  const decision = fallbackDecision(ownWords(turn.thread.own), { tools, isLocal: local });
  return usable(checked(turn, decision, means), 'rules');
}

function usable({ plan, read }: Checked, by: Chosen['by']): Chosen | undefined {
  return read.kind === 'invalid' ? undefined : { by, plan, read };
}

function checked(turn: ModeTurn, decision: RouteDecision, means: Means): Checked {
  const place = turn.thread.rounds.length + 1;
  const plan = { ...decision, idempotencyKey: `${turn.input.turnId}/route/${place}` };
  const canCall = ({ name, args }: PlannedCall) => {
    const bound = turn.toolbox.bind(name, JSON.stringify(args));
    return bound.kind === 'ready' && means.specs.some((spec) => spec.name === bound.name);
  };
  const task = ownWords(turn.thread.own);
  return { plan, read: readPlan(plan, { hasSpecialist: means.hasSpecialist, task, canCall }) };
}

function tokensOf({ usage, text, toolCalls }: RoleAnswer): number {
  if (usage !== undefined) return usage.inputTokens + usage.outputTokens;
  return textTokens(text + toolCalls.map((call) => call.arguments).join(''));
}

const speakerOf = ({ model, usage }: RoleAnswer): Speaker =>
  usage === undefined ? { model } : { model, usage };

function note(
  turn: ModeTurn,
  { who, trace }: RouterDeps,
  durationMs: number,
  chosen: Chosen | undefined,
  outcome: string,
): void {
  const { input, clock, thread } = turn;
  trace({
    kind: 'route',
    at: clock.now(),
    session: input.session,
    turnId: input.turnId,
    model: who.model,
    durationMs,
    by: chosen?.by ?? 'none',
    asked: shortened(ownWords(thread.own), MAX_ASKED_CHARS),
    ...(chosen === undefined ? {} : { plan: chosen.plan }),
    outcome,
  });
}
