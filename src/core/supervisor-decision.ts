// What a supervisor decides: structured output, never a tool call, checked against those there are. What
// cannot be read, names nobody or was done before is FINISH, with the reason for the log.

import { z } from 'zod';
import { FINISH } from './declared-agent.ts';
import { isObject, parseJson } from './fields.ts';
import { objectsIn, repaired, withoutThoughts } from './lenient-json.ts';
import { askedKey, type SupervisedTurn } from './supervised-turn.ts';

const MAX_CHARS = 16_000;
const MAX_INSTRUCTION_CHARS = 8000;

const decisionSchema = z.strictObject({
  next: z.string().min(1).max(100),
  instructions: z.string().max(MAX_INSTRUCTION_CHARS),
  reasoning: z.string().max(MAX_INSTRUCTION_CHARS),
});
type Decision = z.infer<typeof decisionSchema>;

export type SupervisorMeans = {
  readonly agents: readonly string[];
  readonly services: readonly string[];
};

type FinishWhy = 'decided' | 'unreadable' | 'unknown' | 'nothing_asked' | 'repeated' | 'steps';

export type Move =
  | {
      readonly kind: 'task';
      readonly agent: string;
      readonly instructions: string;
      readonly reasoning: string;
    }
  | { readonly kind: 'service'; readonly service: string; readonly query: string }
  | { readonly kind: 'finish'; readonly why: FinishWhy };

const finish = (why: FinishWhy): Move => ({ kind: 'finish', why });

/** `text`: what the supervisor said. */
export function readMove(text: string, state: SupervisedTurn, means: SupervisorMeans): Move {
  const decision = decisionIn(text);
  return decision === undefined ? finish('unreadable') : moveOf(decision, state, means);
}

function moveOf(
  { next, instructions, reasoning }: Decision,
  { made, question }: SupervisedTurn,
  { agents, services }: SupervisorMeans,
): Move {
  const name = next.trim().toLowerCase();
  if (name === FINISH.toLowerCase()) return finish('decided');
  const agent = agents.find((each) => each === name);
  const service = services.find((each) => each === name);
  if (agent === undefined && service === undefined) return finish('unknown');
  const asked = instructions.trim() === '' ? question.trim() : instructions.trim();
  if (asked === '') return finish('nothing_asked');
  if (made.includes(askedKey(name, asked))) return finish('repeated');
  if (agent !== undefined) return { kind: 'task', agent, instructions: asked, reasoning };
  return { kind: 'service', service: name, query: asked };
}

/** From strict to lenient, like that of a router: an object as it is, then with its slips put right. */
function decisionIn(said: string): Decision | undefined {
  const objects = objectsIn(withoutThoughts(said.slice(0, MAX_CHARS)));
  for (const json of objects) {
    const read = decisionSchema.safeParse(parseJson(json));
    if (read.success) return read.data;
  }
  for (const json of objects) {
    const value = repaired(json);
    const read = isObject(value) ? decisionSchema.safeParse(known(value)) : undefined;
    if (read?.success) return read.data;
  }
  return undefined;
}

/** Leaves out what nobody asked for; a list for a string is its first. */
const known = ({ next, instructions, reasoning }: Readonly<Record<string, unknown>>) => ({
  next: first(next),
  instructions: first(instructions) ?? '',
  reasoning: first(reasoning) ?? '',
});
const first = (value: unknown) => (Array.isArray(value) ? value[0] : value);
