// The prompt cache of the model simulator. OpenAI: what a call has in common with an earlier one from
// its beginning on. Anthropic: what an earlier call wrote up to one of its marks, looked for at most
// 20 blocks before a mark of this one. Nothing expires.

import { createHash } from 'node:crypto';
import type { LlmReply, LlmRequest } from './llm-server-reply.ts';
import type { Json } from './llm-server-strict.ts';

export type CountedInput = Required<Pick<NonNullable<LlmReply['usage']>, 'cached' | 'written'>> & {
  readonly input: number;
};

/** What the input of a request took, and what of it was read from the cache and written to it. */
export type PromptCache = (request: LlmRequest) => CountedInput;

const CHARS_PER_TOKEN = 4;
const LOOK_BACK_BLOCKS = 20;

type Block = { readonly text: string; readonly isMarked: boolean };

export function createPromptCache(): PromptCache {
  const written = new Set<string>();
  const sent: string[] = [];
  return (request) => {
    if (request.dialect === 'anthropic') return readMarked(request, written);
    const { tools = [], messages, model } = request.body;
    const text = [model, tools, ...(messages as readonly unknown[])]
      .map((part) => JSON.stringify(part))
      .join('\n');
    const common = Math.max(0, ...sent.map((earlier) => commonChars(earlier, text)));
    sent.push(text);
    return { input: tokensOf(text.length), cached: tokensOf(common), written: 0 };
  };
}

const tokensOf = (chars: number) => Math.ceil(chars / CHARS_PER_TOKEN);

function commonChars(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

function readMarked(request: LlmRequest, written: Set<string>): CountedInput {
  const blocks = blocksOf(request.body);
  const prints: string[] = [];
  const ends: number[] = [];
  const hash = createHash('sha256');
  let chars = 0;
  for (const { text } of blocks) {
    chars += text.length;
    ends.push(chars);
    prints.push(hash.update(text).update('\n').copy().digest('hex'));
  }
  const marks = blocks.flatMap(({ isMarked }, index) => (isMarked ? [index] : []));
  const found = marks.flatMap((mark) => {
    const from = Math.max(0, mark - LOOK_BACK_BLOCKS + 1);
    const near = prints.slice(from, mark + 1);
    const at = near.findLastIndex((print) => written.has(print));
    return at === -1 ? [] : [ends[from + at] ?? 0];
  });
  const cached = tokensOf(Math.max(0, ...found));
  const upTo = tokensOf(ends[marks.at(-1) ?? -1] ?? 0);
  for (const mark of marks) written.add(prints[mark] ?? '');
  return { input: tokensOf(chars), cached, written: Math.max(0, upTo - cached) };
}

/** In the service's order; another choice of tools or other thinking begins the conversation anew. */
function blocksOf(body: Json): readonly Block[] {
  const { tools = [], system = [], messages, model, tool_choice, thinking } = body;
  const content = (messages as readonly Json[]).flatMap(({ role, content }) =>
    (content as readonly Json[]).map((block) => ({ role, ...block })),
  );
  const [first = {}, ...rest] = content;
  const asked = { ...first, choice: tool_choice, thinking };
  const named = (tools as readonly Json[]).map((tool) => ({ ...tool, model }));
  return [...named, ...(system as readonly Json[]), asked, ...rest].map((block) => {
    const { cache_control, ...said } = block as Json;
    return { text: JSON.stringify(said), isMarked: cache_control !== undefined };
  });
}
