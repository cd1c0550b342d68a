// One turn of the trio: asks the router before each step, as long as it answers and has steps left.

import { roundsOf } from '../../agent/rules/turn-closing.ts';
import type { Ask } from '../../agent/rules/turn-state.ts';
import type { AssistantEntry, ToolEntry } from '../../kernel/message/transcript.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import { claimsUndone } from '../steadiness/steadiness.ts';
import type { Cue, Speaker, TurnMode } from './mode.ts';
import type { TrioDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import { isCued } from './record-cue.ts';
import { degradedNotice } from './role-probes.ts';
import { askRouter, type Routed } from './router.ts';
import { SPECIALIST } from './rules/route-decision.ts';
import { specialistToolbox } from './specialist.ts';

const ONLY_WRITE =
  '[Another model decides which tools are used; what they found stands above. Write the answer for the person from it. You have no tools: promise no further step, and say what is missing.]';

type Main = Extract<Cue, { readonly kind: 'main' }>;
const withTools: Main = { kind: 'main', main: { tools: 'offered', notes: [] } };

export function openTrio(
  turn: ModeTurn,
  deps: TrioDeps,
  { shown }: Pick<TurnMode, 'shown'>,
): TurnMode {
  const settings = deps.settings();
  const writing: Main = settings.strict
    ? { kind: 'main', main: { tools: 'none', notes: [ONLY_WRITE] } }
    : withTools;
  const toolbox = specialistToolbox(turn, deps);
  const withOwn: ModeTurn = { ...turn, toolbox };

  return {
    toolbox,
    ...(shown === undefined ? {} : { shown }),
    async *cue(ask, signal) {
      const next = decided(turn, ask, settings);
      if (next === 'write') return writing;
      if (next === 'main goes on') return withTools;
      if (next !== 'route') return next;
      const who = { role: 'router', model: settings.router.model } as const;
      if (deps.health.isResting(who)) return withTools;
      const routed = yield* turn.notices.during(
        askRouter(withOwn, { ...deps, who, settings }, signal),
      );
      if (routed.kind === 'left') {
        if (routed.isOut) yield turn.notices.lasting(degradedNotice(who));
        return { ...withTools, tokens: routed.tokens };
      }
      return cueOf(turn, routed, writing);
    },
  };
}

/** What is clear without the router, from what is recorded of the turn. */
function decided(
  { thread }: ModeTurn,
  ask: Ask,
  { maxSteps, synthesis }: ReturnType<TrioDeps['settings']>,
): Cue | 'route' | 'write' | 'main goes on' {
  // What the person added meanwhile is decided anew.
  const said = thread.own.findLastIndex((entry) => entry.role === 'user');
  const since = thread.own.slice(said + 1);
  const answers = since.filter(
    (entry): entry is AssistantEntry => entry.role === 'assistant' && entry.toolCalls.length > 0,
  );
  if (answers.some((entry) => !isCued(entry))) return 'main goes on';
  if (ask.kind !== 'work') return 'write';
  const last = answers.at(-1);
  if (last === undefined) return 'route';
  const result = roundsOf(since).at(-1)?.at(-1)?.result;
  const by: Speaker = { model: last.model };
  if (result?.status === 'ok' && result.name === 'ask_user')
    return { kind: 'answer', by, text: '' };
  if (result?.name === SPECIALIST) {
    if (result.status !== 'ok') return 'main goes on';
    if (!synthesis) return { kind: 'answer', by, text: textOf(result) };
  }
  return answers.length >= maxSteps ? 'write' : 'route';
}

const textOf = ({ text }: ToolEntry) => unwrapped(text);

function cueOf(
  turn: ModeTurn,
  { plan, by, tokens }: Extract<Routed, { kind: 'planned' }>,
  writing: Main,
): Cue {
  switch (plan.kind) {
    case 'respond':
      return { ...writing, tokens };
    case 'say':
      // What it says was done and was not, the main model writes truly.
      return claimsUndone(turn, { stop: 'end' }, plan.text).length > 0
        ? { ...writing, tokens }
        : { kind: 'answer', by, text: plan.text };
    case 'call': {
      const { name, args } = plan.call;
      return { kind: 'calls', by, calls: [{ name, arguments: JSON.stringify(args) }] };
    }
  }
}
