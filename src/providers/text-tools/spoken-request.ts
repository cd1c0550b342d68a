// What of a request goes out as text: for a model that cannot call tools all of it, for one that must
// be asked by turns its earlier calls and results.

import type { ModelMessage } from '../../kernel/message/transcript.ts';
import type { ModelRequest } from '../provider.ts';
import type { ModelCapabilities } from '../rules/model-capabilities.ts';
import { AnswerReader } from './answer-reader.ts';
import type { Reading } from './openings.ts';
import { EARLIER_CALLS, NO_TOOL_NOW, protocolPrompt } from './protocol-prompt.ts';
import { spokenThread } from './spoken-thread.ts';

type Model = { readonly name: string; readonly capabilities: ModelCapabilities };

/** How answers to it are read; undefined: as they are. */
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

/** Behind what stays the same, so that the server's cache holds. */
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

/** Earlier answers without calls and results that were only written: a model repeats what it sees. */
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
