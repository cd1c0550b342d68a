// Token estimates. Characters / 4 is only a start: providers' counts correct it per model.

import type { ModelMessage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import type { ModelCapabilities } from '../../providers/rules/model-names.ts';
import { summaryText } from './context-marks.ts';

export const CHARS_PER_TOKEN = 4;
/** An image of 1568 pixels a side; vendors count between 700 and 1,600. */
const IMAGE_TOKENS = 1600;
/** Role and separators of one message. */
const MESSAGE_TOKENS = 4;
/** The line with the time before a message. */
const TIME_TOKENS = 6;

/** Of a tool result in the input of a summary. */
export const TOLD_RESULT_TOKENS = 500;

/** Scripts with a token per character raise the estimate; code with long words lowers it. */
const MIN_CORRECTION = 0.5;
const MAX_CORRECTION = 5;
/** Weight of the newest report. */
const CORRECTION_WEIGHT = 0.5;

export const textTokens = (text: string) => Math.ceil(text.length / CHARS_PER_TOKEN);

export function entryTokens(entry: TranscriptEntry): number {
  switch (entry.role) {
    case 'user':
      return MESSAGE_TOKENS + TIME_TOKENS + textTokens(entry.text);
    case 'summary':
      return MESSAGE_TOKENS + textTokens(summaryText(entry));
    case 'tool':
      return MESSAGE_TOKENS + textTokens(entry.text) + textTokens(entry.callId);
    case 'assistant':
      return assistantTokens(entry);
    case 'reset':
    case 'undo':
    case 'restore':
    case 'turn_end':
      return 0;
  }
}

/** The tokens in the input of a summary, which contains the ends of a long result. */
export const toldTokens = (entry: TranscriptEntry) =>
  entry.role === 'tool' ? Math.min(entryTokens(entry), TOLD_RESULT_TOKENS) : entryTokens(entry);

export const entriesTokens = (entries: readonly TranscriptEntry[]) =>
  entries.reduce((sum, entry) => sum + entryTokens(entry), 0);

export function messagesTokens(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

type AssistantMessage = Extract<ModelMessage, { role: 'assistant' }>;

function messageTokens(message: ModelMessage): number {
  if (message.role === 'assistant') return assistantTokens(message);
  const note = message.role === 'user' ? (message.note ?? '') : '';
  return MESSAGE_TOKENS + textTokens(message.text) + textTokens(note);
}

function assistantTokens({ text, toolCalls, thinking }: AssistantMessage): number {
  const callsChars = toolCalls.reduce(
    (sum, call) => sum + call.id.length + call.name.length + call.arguments.length,
    0,
  );
  const chars = thinking.reduce((sum, block) => sum + block.text.length, text.length + callsChars);
  return MESSAGE_TOKENS + Math.ceil(chars / CHARS_PER_TOKEN);
}

/** Images in messages, of which a model is shown `atMost`. */
export function imagesTokens(messages: readonly ModelMessage[], atMost: number): number {
  const count = messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? 0 : (message.images?.length ?? 0)),
    0,
  );
  return Math.min(count, atMost) * IMAGE_TOKENS;
}

/** The factor for the next estimate, after a call estimated at `estimated` took `actual`. */
export function correctedBy(
  factor: number | undefined,
  estimated: number,
  actual: number,
): number | undefined {
  if (estimated <= 0 || actual <= 0) return factor;
  const seen = actual / estimated;
  const next = factor === undefined ? seen : factor + CORRECTION_WEIGHT * (seen - factor);
  return Math.min(MAX_CORRECTION, Math.max(MIN_CORRECTION, next));
}

// Named budgets in tokens, scaled from the model's context window. A local model has a small window
// and reads slowly, so its budgets are smaller.

export type ModelSize = {
  readonly contextTokens: number;
  readonly local: boolean;
  /** Limit of the system prompt, where a call leaves it less than its own share. */
  readonly promptTokens?: number;
};

type Budget = {
  /** Tokens of context per token of budget. */
  readonly divisor: number;
  readonly minTokens: number;
  readonly maxTokens: number;
};
type Budgets = { readonly cloud: Budget; readonly local: Budget };

const SYSTEM_PROMPT: Budgets = {
  cloud: { divisor: 2.5, minTokens: 0, maxTokens: Number.POSITIVE_INFINITY },
  local: { divisor: 10 / 3, minTokens: 500, maxTokens: 4000 },
};
const WORKSPACE_FILES: Budgets = {
  cloud: { divisor: 50, minTokens: 500, maxTokens: 20_000 },
  local: { divisor: 50, minTokens: 300, maxTokens: 2000 },
};
const MEMORY: Budgets = {
  cloud: { divisor: 100, minTokens: 200, maxTokens: 10_000 },
  local: { divisor: 100, minTokens: 100, maxTokens: 1000 },
};
const SKILLS: Budgets = {
  cloud: { divisor: 25, minTokens: 500, maxTokens: 20_000 },
  local: { divisor: 50, minTokens: 200, maxTokens: 1500 },
};
/** Names and purposes of the subagents' profiles. */
const PROFILES: Budgets = {
  cloud: { divisor: 50, minTokens: 200, maxTokens: 4000 },
  local: { divisor: 100, minTokens: 100, maxTokens: 600 },
};
/** The text of skills that a message names; beside the message, not in the prompt. */
const REQUESTED_SKILLS: Budgets = {
  cloud: { divisor: 20, minTokens: 500, maxTokens: 20_000 },
  local: { divisor: 20, minTokens: 200, maxTokens: 3000 },
};

export const requestedSkillTokens = (model: ModelSize) => scale(REQUESTED_SKILLS, model);

/** Shares of the whole system prompt. */
const CHANNEL_CONTEXT_SHARE = 0.08;
const TOOL_GUIDANCE_SHARE = 0.12;

/** Of the working memory of a session, which is not in the prompt. */
const WORKING: Budget = { divisor: 200 / 3, minTokens: 300, maxTokens: 15_000 };

export const workingTokens = (contextTokens: number) =>
  scale({ cloud: WORKING, local: WORKING }, { contextTokens, local: false });

export function promptBudgets(model: ModelSize) {
  const wholeTokens = Math.min(
    scale(SYSTEM_PROMPT, model),
    model.promptTokens ?? Number.POSITIVE_INFINITY,
  );
  return {
    wholeTokens,
    filesTokens: scale(WORKSPACE_FILES, model),
    channelContextTokens: Math.floor(wholeTokens * CHANNEL_CONTEXT_SHARE),
    memoryTokens: scale(MEMORY, model),
    skillsTokens: scale(SKILLS, model),
    profilesTokens: scale(PROFILES, model),
    guidanceTokens: Math.floor(wholeTokens * TOOL_GUIDANCE_SHARE),
  };
}

function scale(budgets: Budgets, { contextTokens, local }: ModelSize): number {
  const { divisor, minTokens, maxTokens } = local ? budgets.local : budgets.cloud;
  return Math.floor(Math.min(maxTokens, Math.max(minTokens, contextTokens / divisor)));
}

/** Estimates err, so a part of the window stays free. */
export const USABLE_CONTEXT_SHARE = 0.85;
/** Share of the window for the answer; the input needs the rest. */
const MAX_OUTPUT_SHARE = 0.2;
/** Share of the input; the conversation gets the rest. */
const PROMPT_SHARE = 0.25;
/** The same for tools: a small share of the first tokens, a larger one beyond. */
const TOOLS_SHARE = 0.16;
const SMALL_INPUT_TOKENS = 5000;
const MORE_TOOLS_SHARE = 0.3;

export type CallBudget = {
  /** Longest answer. */
  readonly outputTokens: number;
  /** System prompt, tools and thread together. */
  readonly inputTokens: number;
  readonly toolsTokens: number;
  readonly promptTokens: number;
};

/** Parts of their shares that tools and prompt keep; tools are reduced first. */
const SQUEEZES = [
  { tools: 1, prompt: 1 },
  { tools: 0.5, prompt: 1 },
  { tools: 0.25, prompt: 1 },
  { tools: 0.25, prompt: 0.5 },
  { tools: 0, prompt: 0 },
] as const;
export const MAX_SQUEEZE = SQUEEZES.length - 1;

/** `squeeze`: 0 to `MAX_SQUEEZE`, for a call whose last exchange needs the room. */
export function callBudget(contextTokens: number, maxTokens: number, squeeze = 0): CallBudget {
  const outputTokens = Math.max(
    1,
    Math.min(maxTokens, Math.floor(contextTokens * MAX_OUTPUT_SHARE)),
  );
  const inputTokens = Math.floor(contextTokens * USABLE_CONTEXT_SHARE) - outputTokens;
  const { tools, prompt } = SQUEEZES[squeeze] ?? SQUEEZES[0];
  const small = Math.min(inputTokens, SMALL_INPUT_TOKENS);
  const toolsTokens = small * TOOLS_SHARE + (inputTokens - small) * MORE_TOOLS_SHARE;
  return {
    outputTokens,
    inputTokens,
    toolsTokens: Math.floor(toolsTokens * tools),
    promptTokens: Math.floor(inputTokens * PROMPT_SHARE * prompt),
  };
}

// Chooses the tools that are described where the window has no room for all: descriptions that fill
// it leave none for the conversation. A tool that is left out still runs when it is called.

/**
 * The tools that most requests need, the most needed first. The others follow in their own order.
 */
const FIRST: readonly string[] = [
  'read_earlier',
  'read_file',
  'write_file',
  'list_dir',
  'read_result',
  'expand',
  'remember',
  'recall',
  'web_search',
  'web_fetch',
  'message',
  'cron',
  'search_files',
  'edit_file',
  'read_skill',
  'check_inbox',
  'send_email',
  'exec',
  'search',
];

export type DescribedTool = {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  /** Length of the tool as JSON; computed once, because it is used several times a turn. */
  readonly jsonChars: number;
};

export const sized = <T extends Omit<DescribedTool, 'jsonChars'>>(tool: T) => ({
  ...tool,
  jsonChars: JSON.stringify(tool).length,
});

/** Of a list of tools. */
export const toolsTokens = (tools: readonly DescribedTool[]) =>
  Math.ceil(tools.reduce((sum, { jsonChars }) => sum + jsonChars + 1, 1) / CHARS_PER_TOKEN);

/**
 * The tools that a model is offered. A small local model gets fewer; a cloud model never counts as
 * small. `smallTools`: names; empty: all.
 */
export function toolsFor<T extends { readonly name: string }>(
  tools: readonly T[],
  { local, capabilities }: OfferedTo,
  smallTools: readonly string[],
): readonly T[] {
  if (capabilities.toolCalling === 'none') return [];
  const takesFew = local && capabilities.sizeClass === 'small' && smallTools.length > 0;
  return takesFew ? tools.filter(({ name }) => smallTools.includes(name)) : tools;
}

type OfferedTo = {
  readonly local: boolean;
  readonly capabilities: Pick<ModelCapabilities, 'sizeClass' | 'toolCalling'>;
};

/** In the given order, so that the prompt cache stays valid. */
export function toolsWithRoom<T extends DescribedTool>(
  tools: readonly T[],
  maxTokens: number,
): readonly T[] {
  if (toolsTokens(tools) <= maxTokens) return tools;
  const kept = new Set<T>();
  let leftTokens = maxTokens;
  for (const tool of byNeed(tools)) {
    const tokens = toolsTokens([tool]);
    if (tokens > leftTokens) continue;
    leftTokens -= tokens;
    kept.add(tool);
  }
  return tools.filter((tool) => kept.has(tool));
}

function byNeed<T extends DescribedTool>(tools: readonly T[]): readonly T[] {
  const rank = ({ name }: T) => {
    const at = FIRST.indexOf(name);
    return at < 0 ? FIRST.length : at;
  };
  return tools.toSorted((a, b) => rank(a) - rank(b));
}

// Which models accept images, by name, and how many images one call contains. Names age: the
// configuration can override them.

/** The first match counts; a model without a match accepts no images, and the person is told. */
const SIGHT: readonly { readonly pattern: RegExp; readonly sees: boolean }[] = [
  { pattern: /embed|rerank|whisper|tts|audio|transcribe|realtime/, sees: false },
  { pattern: /vision|multimodal|omni|(?:^|[^a-z])vl(?:[^a-z]|$)|[\d.]vl/, sees: true },
  { pattern: /claude-(?:2|instant)/, sees: false },
  { pattern: /claude-/, sees: true },
  { pattern: /gpt-oss|gpt-3|(?:^|\/)o[13]-mini|o1-preview/, sees: false },
  { pattern: /gpt-4o|gpt-4\.[15]|gpt-4-turbo|gpt-[5-9]|(?:^|\/)o[134](?:-|$)/, sees: true },
  { pattern: /gemini-/, sees: true },
  { pattern: /glm-\d+(?:\.\d+)?v/, sees: true },
  { pattern: /llama-?4|gemma-?3n/, sees: true },
  { pattern: /gemma-?3.*(?:270m|[^\d]1b)/, sees: false },
  { pattern: /gemma-?[34]/, sees: true },
  { pattern: /llava|moondream|minicpm-v|pixtral|internvl|molmo|deepseek-ocr/, sees: true },
  { pattern: /mistral-(?:small-?(?:3\.[12]|4)|medium-3|large-3)|ministral-3/, sees: true },
  { pattern: /grok-[45]|kimi-k2\.[5-9]|nova-(?:lite|pro|premier)/, sees: true },
];

/** `model` with or without the vendor's prefix. */
export function seesImages(model: string): boolean {
  const lower = model.toLowerCase();
  return SIGHT.find(({ pattern }) => pattern.test(lower))?.sees ?? false;
}

/** The newest of a conversation; each costs as much as a page of text at every call. */
const MAX_IMAGES = 8;
/** Small windows, and seconds of reading for each. */
const MAX_LOCAL_IMAGES = 2;

export const imagesShownBy = (model: { readonly local: boolean }) =>
  model.local ? MAX_LOCAL_IMAGES : MAX_IMAGES;
