// What a model without tool calling is told: the protocol, the tools it has, and what was wrong with
// an answer that did not keep to it.

import type { ModelMessage } from '../../kernel/message/transcript.ts';
import { truncateText } from '../../lib/text/cut.ts';
import type { ToolSpec } from '../provider.ts';

const RULES = `# Tools

You work with tools by writing JSON. Each message of yours is one of these and nothing else: no other text, no code fences.

A call: {"tool": "<name>", "args": {<arguments>}}
The end of the work: {"done": true, "response": "<the whole answer for the person, in Markdown>"}

- "args" is always there; {} where a tool takes nothing.
- Several calls at once: one per line.
- After calls stop and wait. Each result comes as {"tool_result": {"tool": "<name>", "success": true, "data": "..."}}, or with "success": false and "error". Never write a tool_result yourself.
- Needs no tool: answer at once with "done".

The tools, each with the JSON schema of its arguments:`;

export function protocolPrompt(tools: readonly ToolSpec[]): string {
  const described = tools.map(
    ({ name, description, schema }) =>
      `## ${name}\n${description.trim()}\n${JSON.stringify(compact(schema))}`,
  );
  return [RULES, ...described].join('\n\n');
}

/** For a model that calls tools by itself, and sees earlier calls as text. */
export const EARLIER_CALLS =
  'Earlier calls of tools and their results are shown as JSON in the text. Call tools as you always do.';

/** Schema keywords that tell a model nothing. */
const NOISE: ReadonlySet<string> = new Set(['$schema', '$id', 'additionalProperties']);

function compact(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(compact);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key]) => !NOISE.has(key));
  return Object.fromEntries(kept.map(([key, value]) => [key, compact(value)]));
}

/** Enough to see one's own mistake. */
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

export const NO_TOOL_NOW = '[No tool may be called now: answer with "done".]';
