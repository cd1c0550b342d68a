// Trio: a router decides the next step, a specialist works on it, the main model writes. The router
// is asked before each step, as long as it responds and has steps left; without it the main model
// continues with its tools.

import { z } from 'zod';
import {
  ownWords,
  routerDirective,
  routerQuestion,
  SPECIALIST,
  specialistDirective,
  specialistMemory,
  specialistTask,
} from '../../agent/rules/context-pack.ts';
import type { Ask } from '../../agent/rules/turn-state.ts';
import { tokensOf } from '../../agent/take-answer.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import { parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { ToolSpec } from '../../providers/provider.ts';
import type { ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { claimsUndone } from '../steadiness/index.ts';
import {
  askHeld,
  askRole,
  callTerms,
  handedBack,
  mainModelOf,
  marked,
  type RoleAnswer,
  type RoleCall,
  speakerOf,
  withOwnCalls,
  writtenBy,
} from './ask-role.ts';
import { openDigests } from './digests.ts';
import { type Cue, type Main, type Speaker, type TurnMode, WITH_TOOLS } from './mode.ts';
import type { ModeDeps, ModeKind, ModeTurn } from './modes.ts';
import { sinceAsked } from './record-cue.ts';
import { degradedNotice, missing, type RoleModel } from './role-health.ts';
import {
  type PlannedCall,
  type ReadPlan,
  ROUTE_ACTIONS,
  type RouteDecision,
  readPlan,
} from './rules/route-decision.ts';
import { fallbackDecision, type ReadDecision, readDecision } from './rules/route-parse.ts';
import type { TrioConfig } from './settings.ts';
import { tracedCall } from './trace-files.ts';

export function createTrio(deps: ModeDeps): ModeKind {
  const { health, models } = deps;
  const settings = () => deps.settings().trio;
  return {
    problems() {
      const { router, specialist } = settings();
      return [
        ...missing(models, 'agents.trio.router.model', router.model, true),
        ...missing(models, 'agents.trio.specialist.model', specialist.model, false),
      ];
    },
    about() {
      const { router, specialist, strict } = settings();
      return [
        health.sentence({ role: 'router', model: router.model }),
        specialist.model === ''
          ? 'There is no specialist.'
          : health.sentence({ role: SPECIALIST, model: specialist.model }),
        strict ? 'The main model only writes.' : 'The main model has its tools.',
      ];
    },
    open: async (turn) => openTrio(turn, deps),
  };
}

const ONLY_WRITE =
  '[Another model decides which tools are used; what they found stands above. Write the answer for the person from it. You have no tools: promise no further step, and say what is missing.]';
const WRITING = { kind: 'main', main: { tools: 'none', notes: [ONLY_WRITE] } } as const;

function openTrio(turn: ModeTurn, deps: ModeDeps): TurnMode {
  const { trio: settings, delegation } = deps.settings();
  const writing: Main = settings.strict ? WRITING : WITH_TOOLS;
  const { shown } = delegation.model === '' ? {} : openDigests(turn, deps);
  const toolbox = withOwnCalls(turn.toolbox, { [SPECIALIST]: specialistCall(turn, deps) });
  const withOwn: ModeTurn = { ...turn, toolbox };

  return {
    toolbox,
    ...(shown === undefined ? {} : { shown }),
    async *cue(ask, signal) {
      const next = decided(turn, ask, settings);
      if (next === 'write') return writing;
      if (next === 'main goes on') return WITH_TOOLS;
      if (next !== 'route') return next;
      const who: RoleModel = { role: 'router', model: settings.router.model };
      if (deps.health.isResting(who)) return WITH_TOOLS;
      const routed = yield* turn.notices.during(askRouter(withOwn, who, deps, signal));
      if (routed.kind === 'left') {
        if (routed.isOut) yield turn.notices.lasting(degradedNotice(who));
        return { ...WITH_TOOLS, tokens: routed.tokens };
      }
      return cueOf(turn, routed, writing);
    },
  };
}

/** What follows from the recorded entries without the router. */
function decided(
  { thread }: ModeTurn,
  ask: Ask,
  { maxSteps, synthesis }: TrioConfig,
): Cue | 'route' | 'write' | 'main goes on' {
  const { called, by, result, isMainAtWork, afterQuestion } = sinceAsked(thread.own);
  if (isMainAtWork) return 'main goes on';
  if (ask.kind !== 'work') return 'write';
  if (afterQuestion !== undefined) return afterQuestion;
  if (result?.name === SPECIALIST) {
    if (result.status !== 'ok') return 'main goes on';
    if (!synthesis) return { kind: 'answer', by, text: unwrapped(result.text) };
  }
  return called.length >= maxSteps ? 'write' : 'route';
}

function cueOf(
  turn: ModeTurn,
  { plan, by, tokens }: Extract<Routed, { kind: 'planned' }>,
  writing: Main,
): Cue {
  switch (plan.kind) {
    case 'respond':
      return { ...writing, tokens };
    case 'say':
      // A text that claims what was not done is written again by the main model.
      return claimsUndone(turn, { stop: 'end' }, plan.text).length > 0
        ? { ...writing, tokens }
        : { kind: 'answer', by, text: plan.text };
    case 'call': {
      const { name, args } = plan.call;
      return { kind: 'calls', by, calls: [{ name, arguments: JSON.stringify(args) }] };
    }
  }
}

// The specialist: not a tool, but called like one, so that its task and its result are recorded and
// survive a crash. It has no tools itself; its answer to untrusted content stays untrusted.

const input = z.strictObject({ domain: z.string().max(200), task: z.string().min(1).max(20_000) });

const DETAIL_CHARS = 60;
const NOT_ANSWERED: ToolOutcome = {
  status: 'failed',
  text: 'Error (execution): the specialist did not answer. Go on without it.',
  failure: 'execution',
};

const specialistCall = (turn: ModeTurn, deps: ModeDeps) => (json: string) => {
  const read = input.safeParse(parseJson(json));
  if (!read.success) return SPECIALIST;
  const { domain, task } = read.data;
  return {
    detail: `${domain}: ${shortened(task, DETAIL_CHARS)}`,
    run: ({ signal }: ToolContext) => askSpecialist(turn, deps, read.data, signal),
  };
};

async function askSpecialist(
  turn: ModeTurn,
  deps: ModeDeps,
  { domain, task }: z.infer<typeof input>,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const { specialist, synthesis } = deps.settings().trio;
  const { clock, prepared, thread, settings } = turn;
  const who = { role: SPECIALIST, model: specialist.model } as const;
  const started = clock.monotonic();
  const memory = specialistMemory(prepared.history, domain);
  const call = {
    ...callTerms(specialist),
    system: specialistDirective(domain, memory, marked),
    messages: [{ role: 'user', text: specialistTask(task, thread.own, marked) }] as const,
    tools: [],
  };
  // Without synthesis its text goes to the person unchanged.
  const ask = synthesis ? askRole : askHeld;
  const asked = await ask(turn, { ...deps, who }, call, signal);
  const text = asked.kind === 'answered' ? writtenBy(asked).text.trim() : '';
  const about = tracedCall(turn, who.model, started, { asked: task, outcome: text });
  deps.trace({ ...about, kind: 'specialist', domain });
  if (text === '') return NOT_ANSWERED;
  const isCut = text.length > settings.maxResultChars;
  return { ...handedBack(turn, 'the specialist', text), ...(isCut ? { whole: text } : {}) };
}

// Asks the router for the next step and makes a plan of its decision, checked against the tools of
// the turn; rules replace an unusable decision.

type Usable = Exclude<ReadPlan, { readonly kind: 'invalid' }>;

type Routed =
  | {
      readonly kind: 'planned';
      readonly plan: Usable;
      readonly by: Speaker;
      readonly tokens: number;
    }
  /** The main model continues with its tools; `isOut`: the router's breaker is open now. */
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
  readonly plan: RouteDecision;
  readonly read: Usable;
};

/** @throws SpendingRefusedError, or the reason of the signal */
async function askRouter(
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

/** The router's decision, where it can be carried out. */
function saidBy(turn: ModeTurn, answer: RoleAnswer, means: Means): Chosen | undefined {
  const calls = answer.toolCalls.map((call) => call.arguments);
  const read = readDecision({ calls, text: answer.text });
  return read && chosenBy(read.by, turn, read.decision, means);
}

function ruled(turn: ModeTurn, means: Means): Chosen | undefined {
  // After the first step the message still contains its words, so that rules would repeat it.
  if (turn.thread.hasCalls) return undefined;
  const tools = new Set(means.specs.map(({ name }) => name));
  const { local } = turn.models.resolve(mainModelOf(turn));
  const decision = fallbackDecision(ownWords(turn.thread.own), { tools, isLocal: local });
  return chosenBy('rules', turn, decision, means);
}

/** Undefined where it cannot be carried out. */
function chosenBy(
  by: Chosen['by'],
  turn: ModeTurn,
  plan: RouteDecision,
  { specs, hasSpecialist }: Means,
): Chosen | undefined {
  const canCall = ({ name, args }: PlannedCall) => {
    const bound = turn.toolbox.bind(name, JSON.stringify(args));
    return bound.kind === 'ready' && specs.some((spec) => spec.name === bound.name);
  };
  const read = readPlan(plan, { hasSpecialist, task: ownWords(turn.thread.own), canCall });
  return read.kind === 'invalid' ? undefined : { by, plan, read };
}
