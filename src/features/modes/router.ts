// Asks the router for the next step and makes a plan of what it says, held against what the turn really
// has; where nothing usable is said, plain rules stand in.

import { ownWords, routerDirective, routerQuestion } from '../../agent/rules/context-pack.ts';
import type { ToolSpec } from '../../providers/provider.ts';
import {
  askRole,
  callTerms,
  mainModelOf,
  type RoleAnswer,
  type RoleCall,
  speakerOf,
  tokensOf,
} from './ask-role.ts';
import type { Speaker } from './mode.ts';

import type { ModeDeps, ModeTurn } from './modes.ts';
import type { RoleModel } from './role-health.ts';
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
import { tracedCall } from './trace-files.ts';

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
type Chosen = {
  readonly by: ReadDecision['by'] | 'rules';
  readonly plan: ToolPlan;
  readonly read: Usable;
};

/** @throws SpendingRefusedError, or the reason of the signal */
export async function askRouter(
  turn: ModeTurn,
  who: RoleModel,
  deps: ModeDeps,
  signal: AbortSignal,
): Promise<Routed> {
  const { health } = deps;
  const settings = deps.settings().trio;
  const started = turn.clock.monotonic();
  const { model } = settings.specialist;
  const means = {
    specs: turn.toolbox.offered(turn.rights.current).specs,
    hasSpecialist: model !== '' && !health.isResting({ role: SPECIALIST, model }),
  };
  const note = (outcome: string, chosen?: Chosen) => {
    const about = { asked: ownWords(turn.thread.own), outcome };
    const plan = chosen === undefined ? {} : { plan: chosen.plan };
    const record = tracedCall(turn, who.model, started, about);
    deps.trace({ ...record, kind: 'route', by: chosen?.by ?? 'none', ...plan });
  };
  const asked = await askRole(turn, { health, who }, requestOf(turn, settings, means), signal);
  if (asked.kind === 'failed') {
    note('did not answer');
    return { kind: 'left', isOut: asked.isOut, tokens: 0 };
  }
  const tokens = tokensOf(asked.answer);
  const said = saidBy(turn, asked.answer, means);
  const isOut = asked.judge(said !== undefined);
  const chosen = said ?? (settings.fallback ? ruled(turn, means) : undefined);
  if (chosen === undefined || chosen.plan.confidence < settings.minConfidence) {
    note('left to the main model', chosen);
    return { kind: 'left', isOut, tokens };
  }
  note(chosen.read.kind, chosen);
  return { kind: 'planned', plan: chosen.read, by: speakerOf(asked.answer), tokens };
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
    ...callTerms(router),
  };
}

/** What the router said, where that can be done. */
function saidBy(turn: ModeTurn, answer: RoleAnswer, means: Means): Chosen | undefined {
  const calls = answer.toolCalls.map((call) => call.arguments);
  const read = readDecision({ calls, text: answer.text });
  return read && chosenBy(read.by, turn, read.decision, means);
}

function ruled(turn: ModeTurn, means: Means): Chosen | undefined {
  // What the first step was, the words still say: rules would say it again.
  if (turn.thread.hasCalls) return undefined;
  const tools = new Set(means.specs.map(({ name }) => name));
  const { local } = turn.models.resolve(mainModelOf(turn));
  const decision = fallbackDecision(ownWords(turn.thread.own), { tools, isLocal: local });
  return chosenBy('rules', turn, decision, means);
}

/** Undefined where it cannot be done. */
function chosenBy(
  by: Chosen['by'],
  turn: ModeTurn,
  decision: RouteDecision,
  { specs, hasSpecialist }: Means,
): Chosen | undefined {
  const place = turn.thread.rounds.length + 1;
  const plan = { ...decision, idempotencyKey: `${turn.input.turnId}/route/${place}` };
  const canCall = ({ name, args }: PlannedCall) => {
    const bound = turn.toolbox.bind(name, JSON.stringify(args));
    return bound.kind === 'ready' && specs.some((spec) => spec.name === bound.name);
  };
  const read = readPlan(plan, { hasSpecialist, task: ownWords(turn.thread.own), canCall });
  return read.kind === 'invalid' ? undefined : { by, plan, read };
}
