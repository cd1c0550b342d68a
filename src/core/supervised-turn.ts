// The state that supervisor, specialists and services share in one turn. It is never changed: each step
// gives a new one, and all of them follow from what the turn has recorded, so that a turn taken up after
// a crash stands where it stood.

import { ownWords } from './context-pack.ts';
import { isObject, parseJson } from './fields.ts';
import type { ResultId } from './ids.ts';
import type { ToolCall, ToolEntry, TranscriptEntry } from './transcript.ts';
import type { RecordedCall } from './turn-rounds.ts';

/** Calls that are no tools: a specialist is handed a task, and hands its work back. */
export const TASK = 'specialist_task';
export const REPORT = 'specialist_report';

export type SupervisedTask = {
  readonly agent: string;
  /** Of the supervisor, for this task alone. */
  readonly instruction: string;
  /** How many tasks were handed out before it. */
  readonly place: number;
  /** What was recorded since, oldest first. */
  readonly work: readonly TranscriptEntry[];
};

/** To the letter, where it was done. */
export type AgentResponse = {
  readonly agent: string;
  readonly instruction: string;
  readonly status: 'ok' | 'failed';
  readonly text: string;
  readonly isForeign: boolean;
  /** By which the record has it to the letter. */
  readonly resultId: ResultId | undefined;
};

/** Of a service: no specialist said it. */
export type ServiceMessage = Omit<AgentResponse, 'agent' | 'instruction' | 'resultId'> & {
  readonly service: string;
  readonly query: string;
};

export type SupervisedTurn = {
  readonly question: string;
  /** Undefined: the supervisor has the word. */
  readonly task: SupervisedTask | undefined;
  readonly responses: readonly AgentResponse[];
  readonly messages: readonly ServiceMessage[];
  /** Who was asked what since the person last spoke, see `askedKey`. */
  readonly made: readonly string[];
};

export const SUPERVISED_START: SupervisedTurn = {
  question: '',
  task: undefined,
  responses: [],
  messages: [],
  made: [],
};

/** The same for the same question to the same one, whatever its blanks and capitals. */
export const askedKey = (who: string, what: string) =>
  `${who} ${what.toLowerCase().replace(/\s+/g, ' ').trim()}`;

/** The person said something: what was asked before may be asked again. */
export function said(state: SupervisedTurn, entry: TranscriptEntry): SupervisedTurn {
  const words = ownWords([entry]);
  const question = [state.question, words].filter((text) => text !== '').join('\n');
  return worked({ ...state, question, made: [] }, entry);
}

export function handedOut(
  state: SupervisedTurn,
  agent: string,
  instruction: string,
): SupervisedTurn {
  const task = { agent, instruction, place: state.responses.length, work: [] };
  return { ...state, task, made: [...state.made, askedKey(agent, instruction)] };
}

/** Of the specialist at work; without one, nothing. */
export function worked(state: SupervisedTurn, entry: TranscriptEntry): SupervisedTurn {
  const { task } = state;
  return task === undefined ? state : { ...state, task: { ...task, work: [...task.work, entry] } };
}

export function handedBack(state: SupervisedTurn, result: ToolEntry): SupervisedTurn {
  const { task } = state;
  if (task === undefined) return state;
  const { agent, instruction } = task;
  const { resultId } = result;
  const response = { agent, instruction, resultId, ...heardFrom(result) };
  return { ...state, task: undefined, responses: [...state.responses, response] };
}

export function consulted(state: SupervisedTurn, query: string, result: ToolEntry): SupervisedTurn {
  const { name: service } = result;
  const message = { service, query, ...heardFrom(result) };
  const made = [...state.made, askedKey(service, query)];
  return { ...state, messages: [...state.messages, message], made };
}

/** The cut and marked text; who needs it to the letter takes the whole. */
function heardFrom({ status, text, isForeign }: ToolEntry) {
  return {
    status: status === 'ok' ? ('ok' as const) : ('failed' as const),
    text,
    isForeign: isForeign === true,
  };
}

/** Where the turn stands. `own`: what is recorded of it; `services`: names of those there are. */
export function supervisedTurn(
  own: readonly TranscriptEntry[],
  services: readonly string[],
): SupervisedTurn {
  let state = SUPERVISED_START;
  for (const [at, entry] of own.entries()) {
    if (entry.role === 'user') state = said(state, entry);
    else if (entry.role === 'assistant') state = decided(state, entry);
    else if (entry.role === 'tool') {
      state = cameOf(state, { call: callOf(own, at, entry), result: entry }, services);
    }
  }
  return state;
}

/** A task that was handed out is at work from then on, whatever the process did since. */
function decided(
  state: SupervisedTurn,
  entry: Extract<TranscriptEntry, { readonly role: 'assistant' }>,
): SupervisedTurn {
  const [call] = entry.toolCalls;
  if (call?.name === REPORT) return state;
  if (call?.name !== TASK) return worked(state, entry);
  const { agent, instructions } = argsOf(call);
  return handedOut(state, agent ?? '', instructions ?? '');
}

function cameOf(
  state: SupervisedTurn,
  { call, result }: RecordedCall & { readonly result: ToolEntry },
  services: readonly string[],
): SupervisedTurn {
  if (result.name === TASK) return state;
  if (result.name === REPORT) return handedBack(state, result);
  if (state.task !== undefined) return worked(state, result);
  if (!services.includes(result.name)) return state;
  return consulted(state, argsOf(call).query ?? '', result);
}

function callOf(
  own: readonly TranscriptEntry[],
  at: number,
  { callId: id, name }: ToolEntry,
): ToolCall {
  const answer = own.slice(0, at).findLast((entry) => entry.role === 'assistant');
  const calls = answer?.role === 'assistant' ? answer.toolCalls : [];
  return calls.find((call) => call.id === id) ?? { id, name, arguments: '{}' };
}

type Args = Readonly<Partial<Record<'agent' | 'instructions' | 'query', string>>>;

function argsOf({ arguments: json }: ToolCall): Args {
  const args = parseJson(json);
  if (!isObject(args)) return {};
  const { agent, instructions, query } = args;
  return {
    ...(typeof agent === 'string' ? { agent } : {}),
    ...(typeof instructions === 'string' ? { instructions } : {}),
    ...(typeof query === 'string' ? { query } : {}),
  };
}
