// FINISH: the answer for the person. Outputs that are to be kept stand in it to the letter, and the main
// model only frames them; where there are none it writes the answer itself, and where nobody was asked or
// nobody answered, it does the work with its tools.

import type { AgentEvent } from '../../kernel/message/event.ts';
import { firstSeqOf, type ResultId } from '../../kernel/message/ids.ts';
import { unwrapped } from '../../kernel/message/untrusted.ts';
import { claimsUndone } from '../steadiness/steadiness.ts';
import type { AgentRoster } from './agent-files.ts';
import { askHeld, mainModelOf, marked, speakerOf } from './ask-role.ts';
import { type Cue, WITH_TOOLS } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth } from './role-health.ts';
import {
  type AgentResponse,
  composedAnswer,
  type SupervisedTurn,
} from './rules/supervised-turn.ts';
import { framingQuestion, framingSystem, writingNote } from './rules/supervisor-prompts.ts';

type Finishing = {
  readonly turn: ModeTurn;
  readonly health: RoleHealth;
  readonly state: SupervisedTurn;
  readonly roster: AgentRoster;
  /** What a response said before it was cut and marked, where it is known. */
  exact(place: number): string | undefined;
};

type Main = Extract<Cue, { readonly kind: 'main' }>;
type Answer = Extract<Cue, { readonly kind: 'answer' }>;

/** Of the model call that frames outputs. */
const FRAMING = { maxTokens: 1024, temperature: 0.4, timeoutMs: 120_000 };

/** `tokens`: taken to find out that it is done. @throws SpendingRefusedError, or the reason of the signal */
export async function* finishCue(
  finishing: Finishing,
  tokens: number,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, Cue, void> {
  const { turn, state, roster } = finishing;
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
  return yield* turn.notices.during(framed(finishing, outputs, signal));
}

/** Without another call: what is to be kept, where a limit ends the turn. */
export async function closingCue(finishing: Finishing): Promise<Answer | undefined> {
  const outputs = keptOnce(finishing);
  if (outputs.length === 0) return undefined;
  return unframed(finishing, await exactTexts(finishing, outputs));
}

const unframed = ({ turn }: Finishing, texts: readonly string[]): Answer => ({
  kind: 'answer',
  by: { model: mainModelOf(turn) },
  text: composedAnswer('', texts),
});

export const writingCue = ({ answer }: AgentRoster): Main => ({
  kind: 'main',
  main: { tools: 'none', notes: [writingNote(answer)] },
});

/** A supervisor that goes in circles gets the same output again: once is enough. */
function keptOnce({ state, roster, exact }: Finishing): readonly AgentResponse[] {
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
  finishing: Finishing,
  outputs: readonly AgentResponse[],
  signal: AbortSignal,
): Promise<Answer> {
  const { turn, health, state, roster } = finishing;
  const texts = await exactTexts(finishing, outputs);
  const who = { role: 'supervisor', model: mainModelOf(turn) } as const;
  if (health.isResting(who)) return unframed(finishing, texts);
  const text = framingQuestion(state, outputs, marked);
  const call = {
    ...FRAMING,
    system: framingSystem(roster.answer, outputs.length),
    messages: [{ role: 'user', text }] as const,
    tools: [],
  };
  const asked = await askHeld(turn, { health, who }, call, signal);
  if (asked.kind === 'failed') return unframed(finishing, texts);
  asked.judge(true);
  const { answer } = asked;
  const isUsable =
    answer.stop !== 'refused' && claimsUndone(turn, answer, answer.text).length === 0;
  const composed = composedAnswer(isUsable ? answer.text : '', texts);
  return { kind: 'answer', by: speakerOf(answer), text: composed };
}

/** From memory, or, in a process that took the turn up, from the record. */
async function exactTexts(
  { turn, state, exact }: Finishing,
  outputs: readonly AgentResponse[],
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
