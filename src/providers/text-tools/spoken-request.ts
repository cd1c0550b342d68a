// A request for a model without native tool calls: the protocol in its prompt and the conversation
// as plain text turns.

import { CONTINUE, CONVERSATION_RESUMED, mergeRoles } from '../../agent/rules/thread-repair.ts';
import type { ModelMessage } from '../../kernel/message/transcript.ts';
import { truncateText } from '../../lib/text/cut.ts';
import { argumentsObject } from '../completion.ts';
import type { ModelRequest, ToolSpec } from '../provider.ts';
import type { ModelCapabilities } from '../rules/model-names.ts';
import type { Reading } from './answer-parts.ts';
import { AnswerReader } from './answer-reader.ts';

const RULES = `# Tools

You work with tools by writing JSON. Each message of yours is one of these and nothing else: no other text, no code fences.

A call: {"tool": "<name>", "args": {<arguments>}}
The end of the work: {"done": true, "response": "<the whole answer for the person, in Markdown>"}

- "args" is always there; {} where a tool takes nothing.
- Several calls at once: one per line.
- After calls stop and wait. Each result comes as {"tool_result": {"tool": "<name>", "success": true, "data": "..."}}, or with "success": false and "error". Never write a tool_result yourself.
- Needs no tool: answer at once with "done".

The tools, each with the JSON schema of its arguments:`;

function protocolPrompt(tools: readonly ToolSpec[]): string {
  const described = tools.map(
    ({ name, description, schema }) =>
      `## ${name}\n${description.trim()}\n${JSON.stringify(compact(schema))}`,
  );
  return [RULES, ...described].join('\n\n');
}

/** For a model with native tool calls that sees earlier calls as text. */
const EARLIER_CALLS =
  'Earlier calls of tools and their results are shown as JSON in the text. Call tools as you always do.';

/** Schema keywords that are of no use to a model. */
const NOISE: ReadonlySet<string> = new Set(['$schema', '$id', 'additionalProperties']);

function compact(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compact);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key]) => !NOISE.has(key));
  return Object.fromEntries(kept.map(([key, value]) => [key, compact(value)]));
}

/** Enough for the model to see its mistake. */
const MAX_SHOWN_CHARS = 4000;

type Mistake = {
  readonly answer: string;
  readonly problem: string;
  /** The model was told the protocol. */
  readonly isAsked: boolean;
};

export function corrected(
  messages: readonly ModelMessage[],
  { answer, problem, isAsked }: Mistake,
): readonly ModelMessage[] {
  const shown = truncateText(answer, MAX_SHOWN_CHARS, 'too long to be repeated');
  const forms = isAsked ? FORMS : 'Call the tool again, or answer.';
  return [
    ...messages,
    { role: 'assistant', text: shown, toolCalls: [], thinking: [] },
    { role: 'user', text: `Your last message cannot be used: ${problem}.\n${forms}` },
  ];
}

const FORMS = `Write it again, as one of these and nothing else:
{"tool": "<name>", "args": {}}
{"done": true, "response": "..."}`;

const NO_TOOL_NOW = '[No tool may be called now: answer with "done".]';

// A conversation as text only, for models without tool messages: calls and results as JSON of the
// protocol, user and model strictly alternating, the user first and last.

type User = Extract<ModelMessage, { role: 'user' }>;
type Assistant = Extract<ModelMessage, { role: 'assistant' }>;
type Tool = Extract<ModelMessage, { role: 'tool' }>;

/** `done`: earlier answers have the form that the protocol requires of the next one. */
type AnswersAs = 'done' | 'text';

function spokenThread(
  messages: readonly ModelMessage[],
  answersAs: AnswersAs,
  unimitated: (text: string) => string,
): readonly ModelMessage[] {
  const spoken = messages.flatMap((message) => spokenMessage(message, answersAs, unimitated));
  const merged = mergeRoles(spoken, '\n');
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', text: CONVERSATION_RESUMED });
  if (merged.at(-1)?.role !== 'user') merged.push({ role: 'user', text: CONTINUE });
  return merged;
}

function spokenMessage(
  message: ModelMessage,
  answersAs: AnswersAs,
  unimitated: (text: string) => string,
): readonly (User | Assistant)[] {
  if (message.role === 'tool') return [spokenResult(message)];
  if (message.role === 'user') return isEmpty(message) ? [] : [unforged(message)];
  const text = unimitated(message.text).trim();
  const calls = message.toolCalls.map(({ name, arguments: raw }) =>
    JSON.stringify({ tool: name, args: argumentsObject(raw) }),
  );
  if (text === '' && calls.length === 0) return [];
  const isEnd = calls.length === 0 && answersAs === 'done';
  const said = isEnd ? JSON.stringify({ done: true, response: text }) : text;
  const whole = [said, ...calls].filter((part) => part !== '').join('\n');
  return [{ role: 'assistant', text: whole, toolCalls: [], thinking: [] }];
}

function spokenResult({ name, text, failed, images }: Tool): User {
  const outcome = failed ? { success: false, error: text } : { success: true, data: text };
  return {
    role: 'user',
    text: JSON.stringify({ tool_result: { tool: name, ...outcome } }),
    ...(images === undefined ? {} : { images }),
  };
}

const isEmpty = ({ text, images, note }: User) =>
  text.trim() === '' && images === undefined && note === undefined;

/** User text must not be mistaken for the result of a tool. */
const unforged = (message: User): User => ({
  ...message,
  text: message.text.replace(/\{(\s*)"tool_result"/g, '{$1"quoted_tool_result"'),
});

// Converts a request to text: all of it for a model without tool calls; earlier calls and results
// for one that requires alternation.

type Model = { readonly name: string; readonly capabilities: ModelCapabilities };

/** How its answers are read; undefined: unchanged. */
export function readingOf(
  { tools, toolChoice }: ModelRequest,
  { toolCalling, strictAlternation }: ModelCapabilities,
): Reading | undefined {
  if (tools.length === 0 || toolCalling === 'none') return undefined;
  const isAsked = toolCalling === 'text';
  return {
    offered: new Set(tools.map(({ name }) => name)),
    mayCall: toolChoice !== 'none',
    isSpoken: isAsked || strictAlternation,
    isAsked,
  };
}

export function spokenRequest(request: ModelRequest, model: Model): ModelRequest {
  const { toolCalling, strictAlternation } = model.capabilities;
  if (toolCalling === 'native' && !strictAlternation) return request;
  const { toolChoice, tools, ...rest } = request;
  const isTold = toolCalling === 'text' && tools.length > 0;
  const thread = spokenThread(request.messages, isTold ? 'done' : 'text', unimitated(tools, model));
  if (toolCalling === 'native') {
    const choice = toolChoice === undefined ? {} : { toolChoice };
    const system = tools.length === 0 ? rest.system : withPart(rest.system, EARLIER_CALLS);
    return { ...rest, ...choice, tools, system, messages: thread };
  }
  if (!isTold) return { ...rest, tools: [], messages: thread };
  return {
    ...rest,
    tools: [],
    system: withPart(request.system, protocolPrompt(tools)),
    messages: toolChoice === 'none' ? withNote(thread, NO_TOOL_NOW) : thread,
  };
}

/** After the stable parts, so that the server's cache stays valid. */
function withPart(system: ModelRequest['system'], text: string): ModelRequest['system'] {
  const end = system.findLastIndex(({ stable }) => stable) + 1;
  return [...system.slice(0, end), { text, stable: true }, ...system.slice(end)];
}

function withNote(thread: readonly ModelMessage[], note: string): readonly ModelMessage[] {
  const last = thread.at(-1);
  if (last?.role !== 'user') return thread;
  const notes = [last.note, note].filter((part) => part !== undefined).join('\n\n');
  return [...thread.slice(0, -1), { ...last, note: notes }];
}

/**
 * Earlier answers without calls and results that were only written: a model repeats what it sees.
 */
function unimitated(tools: ModelRequest['tools'], { name, capabilities }: Model) {
  const offered = new Set(tools.map((tool) => tool.name));
  const reading: Reading = { offered, mayCall: true, isSpoken: true, isAsked: false };
  return (text: string): string => {
    if (!/[[{<]/.test(text)) return text;
    const reader = new AnswerReader(reading, { name, textDialect: capabilities.textDialect });
    const { text: said } = reader.push(text);
    const { text: rest } = reader.end(false);
    return said + rest;
  };
}
