// The state that supervisor, specialists and services share in one turn. It is immutable and
// derived from the recorded entries of the turn, so a turn resumed after a crash has the same
// state.

import { ownWords } from '../../../agent/rules/context-pack.ts';
import { roundsOf } from '../../../agent/rules/turn-closing.ts';
import type { ResultId } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
} from '../../../kernel/message/transcript.ts';
import { fieldsOf, parseJson, textOf } from '../../../lib/json/json.ts';
import { oneLine, shortened } from '../../../lib/text/cut.ts';

/** Calls that are not tools: handing a task to a specialist, and the specialist's report. */
export const TASK = 'specialist_task';
export const REPORT = 'specialist_report';
/** A call of a tool that the specialist was not given. */
export const NOT_OFFERED = 'tool_not_given';

export type SupervisedTask = {
  readonly agent: string;
  /** From the supervisor, for this task only. */
  readonly instruction: string;
  /** Number of tasks handed out before it. */
  readonly place: number;
  /** Entries recorded since, oldest first. */
  readonly work: readonly TranscriptEntry[];
};

/** The shortened and marked text of a result; the record holds the whole one. */
export type Heard = {
  readonly status: 'ok' | 'failed';
  readonly text: string;
  readonly isForeign: boolean;
};

export type AgentResponse = Heard & {
  readonly agent: string;
  readonly instruction: string;
  /** The id of the full text in the record. */
  readonly resultId: ResultId | undefined;
};

/** The response of a service, which is not a specialist. */
export type ServiceMessage = Heard & { readonly service: string; readonly query: string };

export type SupervisedTurn = {
  readonly question: string;
  /** Undefined: the supervisor decides. */
  readonly task: SupervisedTask | undefined;
  readonly responses: readonly AgentResponse[];
  readonly messages: readonly ServiceMessage[];
  /** Questions asked since the person's last message, see `askedKey`. */
  readonly made: readonly string[];
};

const START: SupervisedTurn = {
  question: '',
  task: undefined,
  responses: [],
  messages: [],
  made: [],
};

/** Equal for the same question to the same recipient, whatever its white space and case. */
export const askedKey = (who: string, what: string) => `${who} ${oneLine(what.toLowerCase())}`;

/** Derives the state. `own`: the recorded entries of the turn; `services`: the available ones. */
export function supervisedTurn(
  own: readonly TranscriptEntry[],
  services: readonly string[],
): SupervisedTurn {
  let calls: readonly ToolCall[] = [];
  return own.reduce((state, entry) => {
    if (entry.role === 'user') return said(state, entry);
    if (entry.role === 'assistant') {
      calls = entry.toolCalls;
      return decided(state, entry);
    }
    return entry.role === 'tool' ? cameOf(state, calls, entry, services) : state;
  }, START);
}

/** A new message of the person allows earlier questions again. */
function said(state: SupervisedTurn, entry: TranscriptEntry): SupervisedTurn {
  const question = [state.question, ownWords([entry])].filter((text) => text !== '').join('\n');
  return worked({ ...state, question, made: [] }, entry);
}

/** A task that was handed out is in progress, also after a restart. */
function decided(state: SupervisedTurn, entry: AssistantEntry): SupervisedTurn {
  const [call] = entry.toolCalls;
  if (call?.name === REPORT) return state;
  if (call?.name !== TASK) return worked(state, entry);
  const agent = argumentIn(call.arguments, 'agent') ?? '';
  const instruction = argumentIn(call.arguments, 'instructions') ?? '';
  const task = { agent, instruction, place: state.responses.length, work: [] };
  return { ...state, task, made: [...state.made, askedKey(agent, instruction)] };
}

/** Adds the entry to the current task; does nothing without one. */
function worked(state: SupervisedTurn, entry: TranscriptEntry): SupervisedTurn {
  const { task } = state;
  return task === undefined ? state : { ...state, task: { ...task, work: [...task.work, entry] } };
}

function cameOf(
  state: SupervisedTurn,
  calls: readonly ToolCall[],
  result: ToolEntry,
  services: readonly string[],
): SupervisedTurn {
  const { name: service, resultId, text } = result;
  const heard: Heard = {
    status: result.status === 'ok' ? 'ok' : 'failed',
    text,
    isForeign: result.isForeign === true,
  };
  const { task } = state;
  if (service === TASK) return state;
  if (service === REPORT) {
    if (task === undefined) return state;
    const { agent, instruction } = task;
    const response = { agent, instruction, resultId, ...heard };
    return { ...state, task: undefined, responses: [...state.responses, response] };
  }
  if (task !== undefined) return worked(state, result);
  if (!services.includes(service)) return state;
  const call = calls.find(({ id }) => id === result.callId);
  const query = argumentIn(call?.arguments ?? '', 'query') ?? '';
  const messages = [...state.messages, { service, query, ...heard }];
  return { ...state, messages, made: [...state.made, askedKey(service, query)] };
}

/** Undefined where it is not a string. */
export const argumentIn = (json: string, key: string) => textOf(fieldsOf(parseJson(json))?.[key]);

// Which models worked on a turn, derived from its entries: the answers of supervisor and
// specialists, and the tasks.

/**
 * Maps entries to roles, as in the figures about model calls; the main model's entries are absent.
 */
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
      work = { turnId, agent: agentIn(call) };
    } else if (work !== undefined && call !== undefined) {
      roles.set(entry, `specialist:${work.agent}`);
      if (call.name === REPORT) work = undefined;
    }
  }
  return roles;
}

const agentIn = (call: ToolCall) => argumentIn(call.arguments, 'agent') ?? 'unknown';

const WORDS_CHARS = 160;

/** For people: one line per task with specialist, reason and outcome. */
export function supervisedSteps(own: readonly TranscriptEntry[]): readonly string[] {
  return roundsOf(own).flatMap(([first]) => {
    const call = first?.call;
    if (call?.name === TASK) {
      const line = (key: string) =>
        shortened(oneLine(argumentIn(call.arguments, key) ?? ''), WORDS_CHARS);
      const why = line('reasoning') === '' ? '' : ` (${line('reasoning')})`;
      return [`the supervisor asked ${agentIn(call)}: ${line('instructions')}${why}`];
    }
    if (call?.name !== REPORT) return [];
    const how = first?.result?.status === 'ok' ? 'handed its work back' : 'gave no result';
    return [`${agentIn(call)} ${how}`];
  });
}

// Composes the answer from the specialists' outputs, which are inserted verbatim, and the frame
// that a model writes around them.

/** Placeholder of an output; numbers start at 1. */
export const placeOf = (number: number) => `[[output ${number}]]`;
const PLACE = /\[\[\s*output\s*(\d+)?\s*\]\]/gi;

/**
 * Each output appears once in the answer, between blank lines and as a code block unless it is one
 * plain line. An output without a placeholder follows the first paragraph; lines of the frame that
 * repeat an output verbatim count as its placeholder.
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

/** One line without any Markdown syntax. */
const isPlain = (line: string) =>
  /^(?!\d+[.)] )[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}.,;:!?'’"“”()%€$/+–—-]| (?! ))*$/u.test(line);

/** A code block is the only form that every channel shows unchanged. */
function asText(output: string): string {
  if (isPlain(output.trim())) return output;
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${output}\n${fence}`;
}

/** A frame that already put the placeholder, or the output itself, into a code block. */
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

/** Texts as they are, and for each placeholder the index of its output. */
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
