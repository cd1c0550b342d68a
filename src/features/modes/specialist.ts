// The specialist: no tool, but called like one, so that its task and its result are recorded and a crash
// costs nothing. It has no tools itself; what it makes of words of others stays words of others.

import { z } from 'zod';
import {
  specialistDirective,
  specialistMemory,
  specialistTask,
  type Wrap,
} from '../../agent/rules/context-pack.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { askHeld } from './ask-held.ts';
import { askRole, payerOf } from './ask-role.ts';
import type { TrioDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import { writtenBy } from './role-probes.ts';
import { SPECIALIST } from './rules/route-decision.ts';
import { MAX_ASKED_CHARS, MAX_OUTCOME_CHARS } from './trace.ts';

const input = z.strictObject({ domain: z.string().max(200), task: z.string().min(1).max(20_000) });
type Input = z.infer<typeof input>;

const DETAIL_CHARS = 60;
const NOT_ANSWERED = 'Error (execution): the specialist did not answer. Go on without it.';
const NOT_CALLED_SO: BoundCall = {
  kind: 'refused',
  name: SPECIALIST,
  outcome: {
    status: 'failed',
    text: 'Error (unknown tool): you have no tool specialist. Use those you were given.',
    failure: 'unknown_tool',
  },
};

/** The tools of the turn, with the specialist behind the name it is recorded by. */
export function specialistToolbox(turn: ModeTurn, deps: TrioDeps): Toolbox {
  const { toolbox } = turn;
  const wrap: Wrap = (what, text) => wrapUntrusted(what, [{ text }], newBoundary());

  async function run(asked: Input, { signal }: ToolContext): Promise<ToolOutcome> {
    const { specialist, synthesis } = deps.settings();
    const { domain, task } = asked;
    const { clock, prepared, thread, settings } = turn;
    const who = { role: SPECIALIST, model: specialist.model } as const;
    const started = clock.monotonic();
    const memory = specialistMemory(prepared.history, domain);
    const call = {
      system: specialistDirective(domain, memory, wrap),
      messages: [{ role: 'user', text: specialistTask(task, thread.own, wrap) }] as const,
      tools: [],
      maxTokens: specialist.maxTokens,
      temperature: specialist.temperature,
      timeoutMs: specialist.timeoutSecs * 1000,
    };
    // Without synthesis its words go to the person as they are.
    const ask = synthesis ? askRole : askHeld;
    const answer = await ask(turn, { ...deps, who }, call, signal);
    const text = answer.kind === 'answered' ? writtenBy(answer.answer).trim() : '';
    trace(turn, deps, { ...asked, model: who.model, text, started });
    if (answer.kind === 'failed') return failed();
    if (text === '') {
      if (answer.answer.stop !== 'refused') deps.health.failed(who, payerOf(turn), 'useless');
      return failed();
    }
    deps.health.succeeded(who, payerOf(turn));
    const shown = shortened(text, settings.maxResultChars);
    const whole = shown === text ? {} : { whole: text };
    if (!thread.isTainted) return { status: 'ok', text: shown, ...whole };
    const wrapped = wrap('from the specialist, who read words of others', shown);
    return { status: 'ok', text: wrapped, isForeign: true, ...whole };
  }

  return {
    ...toolbox,
    bind(name, json) {
      if (name !== SPECIALIST) return toolbox.bind(name, json);
      const read = input.safeParse(parseJson(json));
      return read.success
        ? boundCall(read.data, (context) => run(read.data, context))
        : NOT_CALLED_SO;
    },
  };
}

const failed = (): ToolOutcome => ({ status: 'failed', text: NOT_ANSWERED, failure: 'execution' });

function boundCall(asked: Input, run: (context: ToolContext) => Promise<ToolOutcome>): BoundCall {
  return {
    kind: 'ready',
    name: SPECIALIST,
    access: 'read',
    accessIn: () => 'read',
    isPosted: false,
    url: undefined,
    arguments: JSON.stringify(asked),
    detail: `${asked.domain}: ${shortened(asked.task, DETAIL_CHARS)}`,
    seal: async () => undefined,
    run,
  };
}

type Dispatched = Input & {
  readonly model: string;
  readonly text: string;
  readonly started: number;
};

function trace(turn: ModeTurn, deps: TrioDeps, done: Dispatched): void {
  const { input: about, clock } = turn;
  deps.trace({
    kind: 'specialist',
    at: clock.now(),
    session: about.session,
    turnId: about.turnId,
    model: done.model,
    durationMs: Math.round(clock.monotonic() - done.started),
    domain: done.domain,
    asked: shortened(done.task, MAX_ASKED_CHARS),
    outcome: shortened(done.text, MAX_OUTCOME_CHARS),
  });
}
