// FINISH: the answer for the person. Outputs that are to be kept stand in it to the letter, and the main
// model only frames them; where there are none it writes the answer itself, and where nobody was asked or
// nobody answered, it does the work with its tools.

import { z } from 'zod';
import type { AgentEvent } from '../../kernel/message/event.ts';
import { firstSeqOf, type ResultId } from '../../kernel/message/ids.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import { isObject, parseJson } from '../../lib/json/json.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { claimsUndone } from '../steadiness/steadiness.ts';
import type { AgentRoster } from './agent-files.ts';
import { askHeld, payerOf } from './ask-role.ts';
import type { Cue } from './mode.ts';
import type { SupervisorDeps } from './mode-deps.ts';
import type { ModeTurn } from './modes.ts';
import {
  type AgentResponse,
  composedAnswer,
  REPORT,
  type SupervisedTurn,
  TASK,
} from './rules/supervised-turn.ts';
import { framingQuestion, framingSystem, writingNote } from './rules/supervisor-prompts.ts';
import { markForeign, speakerOf } from './supervisor-words.ts';

export type Finishing = {
  readonly state: SupervisedTurn;
  readonly roster: AgentRoster;
  /** Tokens taken to find out that it is done. */
  readonly tokens: number;
  /** What a response said before it was cut and marked, where it is known. */
  exact(place: number): string | undefined;
};

const TEMPERATURE = 0.4;
const FRAME_TOKENS = 1024;
const TIMEOUT_MS = 120_000;

type Main = Extract<Cue, { readonly kind: 'main' }>;
export const WITH_TOOLS: Main = { kind: 'main', main: { tools: 'offered', notes: [] } };

/** @throws SpendingRefusedError, or the reason of the signal */
export async function* finishCue(
  turn: ModeTurn,
  deps: Pick<SupervisorDeps, 'health'>,
  finishing: Finishing,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, Cue, void> {
  const { state, roster, tokens } = finishing;
  const done = [...state.responses, ...state.messages].some(({ status }) => status === 'ok');
  if (!done) {
    const failed = new Set(state.responses.map(({ agent }) => agent));
    if (failed.size > 0) {
      const who = [...failed].join(', ');
      const text = `No result came from ${who}; I go on with the main model and its tools.`;
      yield turn.notices.lasting(text);
    }
    return { ...WITH_TOOLS, tokens };
  }
  const outputs = keptOnce(finishing);
  if (outputs.length === 0) return { ...writingCue(roster), tokens };
  return yield* turn.notices.during(framed(turn, deps, { ...finishing, outputs }, signal));
}

/** Without another call: what is to be kept, where a limit ends the turn. */
export async function closingCue(
  turn: ModeTurn,
  finishing: Omit<Finishing, 'tokens'>,
): Promise<Extract<Cue, { readonly kind: 'answer' }> | undefined> {
  const outputs = keptOnce(finishing);
  if (outputs.length === 0) return undefined;
  const texts = await exactTexts(turn, { ...finishing, outputs });
  const model = turn.input.settings.model ?? turn.models.defaultModel;
  return { kind: 'answer', by: { model }, text: composedAnswer('', texts) };
}

export const writingCue = ({ answer }: AgentRoster): Main => ({
  kind: 'main',
  main: { tools: 'none', notes: [writingNote(answer)] },
});

/** A supervisor that goes in circles has the same said again: once is enough. */
function keptOnce({ state, roster, exact }: Omit<Finishing, 'tokens'>): readonly AgentResponse[] {
  const outputs = new Map<string, AgentResponse>();
  for (const [place, response] of state.responses.entries()) {
    const text = exact(place) ?? unwrapped(response.text);
    if (isKept(response, roster) && !outputs.has(text)) outputs.set(text, response);
  }
  return [...outputs.values()];
}

function isKept({ agent, status }: AgentResponse, { agents }: AgentRoster): boolean {
  const declared = agents.find((each) => each.kind === 'valid' && each.value.name === agent);
  return status === 'ok' && (declared?.kind !== 'valid' || declared.value.output === 'verbatim');
}

async function framed(
  turn: ModeTurn,
  { health }: Pick<SupervisorDeps, 'health'>,
  asking: Finishing & { readonly outputs: readonly AgentResponse[] },
  signal: AbortSignal,
): Promise<Cue> {
  const { state, roster, outputs } = asking;
  const texts = await exactTexts(turn, asking);
  const model = turn.input.settings.model ?? turn.models.defaultModel;
  const who = { role: 'supervisor', model } as const;
  const call = {
    system: framingSystem(roster.answer, outputs.length),
    messages: [{ role: 'user', text: framingQuestion(state, outputs, markForeign) }] as const,
    tools: [],
    maxTokens: FRAME_TOKENS,
    temperature: TEMPERATURE,
    timeoutMs: TIMEOUT_MS,
  };
  const asked = health.isResting(who)
    ? undefined
    : await askHeld(turn, { health, who }, call, signal);
  // Without a frame, or with one that still tells of what nobody did, the outputs are the answer.
  if (asked?.kind !== 'answered')
    return { kind: 'answer', by: { model }, text: composedAnswer('', texts) };
  health.succeeded(who, payerOf(turn));
  const { answer } = asked;
  const isUsable =
    answer.stop !== 'refused' && claimsUndone(turn, answer, answer.text).length === 0;
  const text = composedAnswer(isUsable ? answer.text : '', texts);
  return { kind: 'answer', by: speakerOf(answer), text };
}

/** From memory, or, in a process that took the turn up, from the record. */
async function exactTexts(
  turn: ModeTurn,
  {
    outputs,
    state,
    exact,
  }: Omit<Finishing, 'tokens'> & { readonly outputs: readonly AgentResponse[] },
): Promise<readonly string[]> {
  const known = outputs.map((output) => exact(state.responses.indexOf(output)));
  const recorded = known.includes(undefined) ? await recordedWhole(turn) : new Map();
  return outputs.map(({ resultId, text }, at) => {
    const whole: string | undefined = resultId && recorded.get(resultId);
    return known[at] ?? whole ?? unwrapped(text);
  });
}

/** What is kept whole of the results of this turn. */
async function recordedWhole({ sessions, input }: ModeTurn): Promise<Map<ResultId, string>> {
  const from = firstSeqOf(input.turnId);
  if (from === undefined) return new Map();
  const question = { from, before: from + 1, maxTurns: 1 };
  const { turns } = await sessions.earlier(input.session, question);
  const entries = turns.flatMap((turn) => turn.entries);
  return new Map(
    entries.flatMap((entry) =>
      entry.role === 'tool' && entry.resultId !== undefined && entry.whole !== undefined
        ? [[entry.resultId, entry.whole] as const]
        : [],
    ),
  );
}

// The tools of a supervised turn, with what is no tool and still is recorded like a call: a task handed to
// a specialist, its work handed back, and a tool that it was not given.

export const NOT_OFFERED = 'tool_not_given';

const DETAIL_CHARS = 100;

const task = z.object({ agent: z.string(), instructions: z.string() });
const report = z.object({ agent: z.string(), task: z.int() });

export type Reporting = (signal: AbortSignal) => Promise<ToolOutcome>;

/** `reporting` hands back what the specialist at work wrote. */
export function supervisorToolbox(toolbox: Toolbox, reporting: Reporting): Toolbox {
  return {
    ...toolbox,
    bind(name, json) {
      if (name === NOT_OFFERED) return refused(name, toolIn(json));
      if (name === TASK) {
        const read = task.safeParse(parseJson(json));
        if (!read.success) return refused(name, name);
        const { agent, instructions } = read.data;
        const text = `The task was handed to ${agent}, whose work follows.`;
        const detail = `${agent}: ${shortened(instructions, DETAIL_CHARS)}`;
        return bound(name, json, { detail, run: async () => ({ status: 'ok', text }) });
      }
      if (name !== REPORT) return toolbox.bind(name, json);
      const read = report.safeParse(parseJson(json));
      if (!read.success) return refused(name, name);
      const run = ({ signal }: ToolContext) => reporting(signal);
      return bound(name, json, { detail: read.data.agent, run });
    },
  };
}

function toolIn(json: string): string {
  const args = parseJson(json);
  return isObject(args) && typeof args['tool'] === 'string' ? args['tool'] : 'of this name';
}

function bound(
  name: string,
  json: string,
  { detail, run }: Pick<Extract<BoundCall, { readonly kind: 'ready' }>, 'detail' | 'run'>,
): BoundCall {
  return {
    kind: 'ready',
    name,
    access: 'read',
    accessIn: () => 'read',
    isPosted: false,
    url: undefined,
    arguments: json,
    detail,
    seal: async () => undefined,
    run,
  };
}

function refused(name: string, tool: string): BoundCall {
  const text = `Error (unknown tool): you have no tool ${tool} here. Use those you were given.`;
  const outcome = { status: 'failed', text, failure: 'unknown_tool' } as const;
  return { kind: 'refused', name, outcome };
}
