// The state that supervisor, specialists and services share in one turn. It is never changed: each step
// gives a new one, and all of them follow from what the turn has recorded, so that a turn taken up after
// a crash stands where it stood.

import { ownWords } from '../../../agent/rules/context-pack.ts';
import { type RecordedCall, roundsOf } from '../../../agent/rules/turn-closing.ts';
import type { ResultId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
} from '../../../kernel/message/transcript.ts';
import { isObject, parseJson } from '../../../lib/json/json.ts';
import { shortened } from '../../../lib/text/cut.ts';

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

// Who of several worked on a turn, told from what it recorded: which answers were a supervisor's or a
// specialist's, and what was asked of whom.

/** By their roles, as figures about model calls name them; all others have none. */
export function supervisedRoles(
  entries: readonly TranscriptEntry[],
): ReadonlyMap<AssistantEntry, string> {
  const roles = new Map<AssistantEntry, string>();
  let work: { readonly turnId: string; readonly agent: string } | undefined;
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue;
    const { turnId, toolCalls } = entry;
    const [call] = toolCalls;
    if (work?.turnId !== turnId) work = undefined;
    if (call?.name === TASK) {
      roles.set(entry, 'supervisor');
      work = { turnId, agent: agentIn(call.arguments) };
    } else if (work !== undefined && call !== undefined) {
      roles.set(entry, `specialist:${work.agent}`);
      if (call.name === REPORT) work = undefined;
    }
  }
  return roles;
}

function agentIn(json: string): string {
  const args = parseJson(json);
  return isObject(args) && typeof args['agent'] === 'string' ? args['agent'] : 'unknown';
}

const WORDS_CHARS = 160;

/** For people, a line for each task of a turn: whom the supervisor asked what, why, and what came of it. */
export function supervisedSteps(own: readonly TranscriptEntry[]): readonly string[] {
  return roundsOf(own).flatMap(([first]) => {
    if (first?.call.name === TASK) {
      const { instructions, reasoning } = textsIn(first.call.arguments);
      const why = reasoning === '' ? '' : ` (${shortened(reasoning, WORDS_CHARS)})`;
      const agent = agentIn(first.call.arguments);
      return [`the supervisor asked ${agent}: ${shortened(instructions, WORDS_CHARS)}${why}`];
    }
    if (first?.call.name !== REPORT) return [];
    const how = first.result?.status === 'ok' ? 'handed its work back' : 'gave no result';
    return [`${agentIn(first.call.arguments)} ${how}`];
  });
}

function textsIn(json: string) {
  const args = parseJson(json);
  const textOf = (key: string) =>
    isObject(args) && typeof args[key] === 'string' ? args[key].replace(/\s+/g, ' ').trim() : '';
  return { instructions: textOf('instructions'), reasoning: textOf('reasoning') };
}

// An answer around what specialists wrote: their outputs are put in to the letter, whatever the model
// that frames them makes of them.

/** Where the output of this number, counted from 1, belongs. */
export const placeOf = (number: number) => `[[output ${number}]]`;
const PLACE = /\[\[\s*output\s*(\d+)?\s*\]\]/gi;

/**
 * Every output stands in the answer once, between blank lines and as a block of code unless it is a plain line. One that `frame` has no place for stands
 * behind its first paragraph; lines that repeat one to the letter are its place.
 */
export function composedAnswer(frame: string, outputs: readonly string[]): string {
  const placed = new Set<number>();
  const pieces: string[] = [];
  for (const part of partsOf(withPlaces(frame, outputs))) {
    if (typeof part === 'string') pieces.push(part);
    else if (outputs[part] !== undefined && !placed.has(part)) {
      placed.add(part);
      pieces.push(asText(outputs[part]));
    }
  }
  const text = pieces.filter(isSaid);
  const missing = outputs
    .filter((_, at) => !placed.has(at))
    .filter(isSaid)
    .map(asText);
  const all = placed.size === 0 ? withinText(text, missing) : [...text, ...missing];
  return all.filter(isSaid).join('\n\n');
}

/** One line in which nothing can be Markdown. */
const PLAIN = /^(?!\d+[.)] )[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}.,;:!?'’"“”()%€$/+–—-]| (?! ))*$/u;

/** A block of code is the one form that every channel shows as it is, whatever Markdown would make of it. */
function asText(output: string): string {
  if (PLAIN.test(output.trim())) return output;
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${output}\n${fence}`;
}

/** A frame that put the place, or the output itself, into a block of code already. */
const FENCED_PLACE =
  /^ {0,3}(`{3,}|~{3,})[^\n`]*\n\s*(\[\[\s*output\s*\d*\s*\]\])\s*\n {0,3}\1[ \t]*$/gim;

const isSaid = (piece: string) => piece.trim() !== '';

function withPlaces(frame: string, outputs: readonly string[]): string {
  const marked = outputs.reduce((text, output, at) => {
    const lines = `\n${output}\n`;
    return text.includes(lines) ? text.replace(lines, () => `\n${placeOf(at + 1)}\n`) : text;
  }, `\n${frame}\n`);
  return marked.replace(FENCED_PLACE, '$2').trim();
}

/** Texts as they are, and for each place the index of its output. */
function partsOf(frame: string): readonly (string | number)[] {
  const parts: (string | number)[] = [];
  let from = 0;
  for (const found of frame.matchAll(PLACE)) {
    parts.push(frame.slice(from, found.index).trim(), Number(found[1] ?? 1) - 1);
    from = found.index + found[0].length;
  }
  return [...parts, frame.slice(from).trim()];
}

function withinText(pieces: readonly string[], missing: readonly string[]): readonly string[] {
  const text = pieces.join('\n\n');
  const end = text.search(/\n\s*\n/);
  const [before, after] = end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end).trim()];
  return [before, ...missing, after];
}
