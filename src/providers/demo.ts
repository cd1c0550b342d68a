// The demo provider: answers by a script, without any model or network.

import { ProviderError } from '../kernel/message/errors.ts';
import type { ModelMessage } from '../kernel/message/transcript.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { Completion, createCallIds } from './completion.ts';
import type { LLMProvider, ModelEvent, ModelRequest, ToolSpec } from './provider.ts';

type DemoReply =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool'; readonly tool: string; readonly arguments: string };

const INTRODUCTION = t`I am the built-in demo: a small program, not an AI model.`;

const CONNECT = t`To connect a real model, do one of these on the machine where nanobot runs:

- set a key and start again, e.g. \`export ANTHROPIC_API_KEY=...\` or \`export OPENAI_API_KEY=...\` (also OpenRouter, DeepSeek, Gemini, Groq, Zhipu);
- start a model server such as Ollama or LM Studio on that machine, then start nanobot again;
- or run \`npm run nanobot -- onboard\` (installed: \`nanobot onboard\`), which asks you and checks everything.`;

const ABILITIES = t`I can show you what the gateway does. Try one of these:

- **what time is it**: calls a tool
- **list files** or **read AGENTS.md**: reads the workspace
- **remember I like tea**, then **recall tea**: the memory
- **markdown**: headings, a table, code
- **long**: a long answer, streamed and split where the channel needs it
- **connect**: how to get a real model`;

const MARKDOWN = t`## A sample of Markdown

Text may be **bold**, *italic*, \`code\` or a [link](https://example.org/).

| Stage | What happens |
| --- | --- |
| receive | stored before it is acknowledged |
| answer | streamed while it is written |
| deliver | once, also after a crash |

\`\`\`js
const answer = [6, 7].reduce((a, b) => a * b);
console.log(answer);
\`\`\`

1. first
2. second
   - with a point below

> And a quotation at the end.`;

const LONG_PARAGRAPHS = 40;

type Rule = {
  readonly pattern: RegExp;
  readonly reply: (match: RegExpExecArray, tools: readonly ToolSpec[]) => DemoReply;
};

const RULES: readonly Rule[] = [
  {
    pattern: /\b(what(?:'s| is)? (?:the )?(?:time|date|day)|time is it|current time)\b/i,
    reply: (_match, tools) => call(tools, 'time', ''),
  },
  {
    pattern: /\b(?:list|show) (?:the |my |all )?(?:files|folder|workspace)\b/i,
    reply: (_match, tools) => call(tools, 'list_dir', '.', 'path'),
  },
  {
    pattern: /\bread (?:the file )?[`"']?([\w./-]+\w)/i,
    reply: (match, tools) => call(tools, 'read_file', match[1] ?? '', 'path'),
  },
  {
    pattern: /\bremember (?:that )?(.{2,500})/is,
    reply: (match, tools) => call(tools, 'remember', match[1]?.trim() ?? '', 'text', 'fact'),
  },
  {
    pattern: /\brecall (.{2,200})/is,
    reply: (match, tools) => call(tools, 'recall', match[1]?.trim() ?? '', 'query'),
  },
  { pattern: /\b(?:connect|real model|api key)\b/i, reply: () => say(CONNECT) },
  { pattern: /\bhelp\b/i, reply: () => say(`${ABILITIES}\n\n${CONNECT}`) },
  { pattern: /\bmarkdown\b/i, reply: () => say(t`Here is a sample.\n\n${MARKDOWN}`) },
  { pattern: /\blong\b/i, reply: () => say(longText()) },
];

export function demoReply(request: Pick<ModelRequest, 'messages' | 'tools'>): DemoReply {
  const { messages, tools } = request;
  const asked = messages.findLastIndex((message) => message.role === 'user');
  const results = messages.slice(asked + 1).filter((message) => message.role === 'tool');
  if (results.length > 0) return say(describe(results));
  const question = messages[asked];
  const text = question?.role === 'user' ? question.text : '';
  for (const { pattern, reply } of RULES) {
    const match = pattern.exec(text);
    if (match !== null) return reply(match, tools);
  }
  return say(t`I cannot understand what you wrote.\n\n${ABILITIES}\n\n${CONNECT}`);
}

const say = (text: string): DemoReply => ({ kind: 'text', text: `${INTRODUCTION} ${text}` });

/** Puts the value into the argument that the tool's schema has under one of these names. */
function call(
  tools: readonly ToolSpec[],
  name: string,
  value: string,
  ...argumentNames: readonly string[]
): DemoReply {
  const spec = tools.find((tool) => tool.name === name);
  if (spec === undefined) return say(t`I would call the tool \`${name}\`, but it is switched off.`);
  const properties = spec.schema['properties'];
  const known =
    typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  const key = argumentNames.find((candidate) => known.includes(candidate)) ?? known[0];
  const takesValue = argumentNames.length > 0 && key !== undefined;
  return {
    kind: 'tool',
    tool: name,
    arguments: JSON.stringify(takesValue ? { [key]: value } : {}),
  };
}

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

function describe(results: readonly ToolMessage[]): string {
  const parts = results.map(({ name, text, failed }) => {
    const opening = failed ? t`The tool \`${name}\` failed:` : t`I called the tool \`${name}\`:`;
    return `${opening}\n\n${fenced(text.trim() === '' ? t`(no output)` : text)}`;
  });
  return parts.join('\n\n');
}

/** A fence longer than any run of backticks inside. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function longText(): string {
  const paragraphs = Array.from(
    { length: LONG_PARAGRAPHS },
    (_, index) =>
      t`**Paragraph ${index + 1} of ${LONG_PARAGRAPHS}.** It is only here to be long, so that you can ` +
      t`watch the answer grow, stop it half-way with /stop, and see that every part arrives in order ` +
      t`even where a channel allows no more than a few thousand characters in one message.`,
  );
  return t`Here is a long answer.\n\n${paragraphs.join('\n\n')}`;
}

// The model when no real one is connected. It says that it is a demo and shows streaming and tools
// by fixed rules.

/** Slow enough to be visible. */
const WORD_MS = 12;
const CHARS_PER_TOKEN = 4;

type DemoDeps = {
  readonly clock: Clock;
  /** Pause after each word, milliseconds; 0 = none. */
  readonly wordMs?: number;
};

export function createDemoProvider({ clock, wordMs = WORD_MS }: DemoDeps): LLMProvider {
  return {
    name: 'demo',
    async *stream(request, signal): AsyncGenerator<ModelEvent, void, void> {
      const completion = new Completion();
      const reply = demoReply(request);
      if (reply.kind === 'tool') {
        const id = createCallIds(request.messages)('');
        const { event, at } = completion.toolCall({ id, name: reply.tool });
        yield event;
        completion.toolArguments(at, reply.arguments);
      } else {
        for (const word of reply.text.match(/\s*\S+\s*/g) ?? []) {
          if (wordMs > 0) await pause(wordMs, clock, signal);
          if (signal.aborted) throw cancelled();
          yield completion.text(word);
        }
      }
      completion.usage(roughUsage(request, reply));
      yield completion.finish(request.model, 'end');
    },
  };
}

async function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch {
    throw cancelled();
  }
}

const cancelled = () =>
  new ProviderError('the call was cancelled', {
    failure: { kind: 'cancelled' },
    provider: 'demo',
    model: 'demo',
  });

function roughUsage(request: ModelRequest, reply: DemoReply) {
  const read = JSON.stringify([request.system, request.messages, request.tools]).length;
  const written = reply.kind === 'tool' ? reply.arguments.length : reply.text.length;
  return {
    inputTokens: Math.ceil(read / CHARS_PER_TOKEN),
    outputTokens: Math.ceil(written / CHARS_PER_TOKEN),
    cachedTokens: 0,
  };
}
