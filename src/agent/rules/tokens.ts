// Estimates of tokens. Characters / 4 is only a start: what providers report corrects it per model.

import type { ModelMessage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { summaryText } from './context-marks.ts';

export const CHARS_PER_TOKEN = 4;
/** An image of 1568 pixels a side; vendors count between 700 and 1,600. */
const IMAGE_TOKENS = 1600;
/** Role and separators of one message. */
const MESSAGE_TOKENS = 4;
/** The line before a message that says when it came. */
const TIME_TOKENS = 6;

/** Of a result of a tool, where a conversation is summed up. */
export const TOLD_RESULT_TOKENS = 500;

/** Scripts with a token per character push the estimate up; code with long words pulls it down. */
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

/** The same as it is told to a model that sums up, which is shown the ends of a long result. */
export const toldTokens = (entry: TranscriptEntry) =>
  entry.role === 'tool' ? Math.min(entryTokens(entry), TOLD_RESULT_TOKENS) : entryTokens(entry);

export const entriesTokens = (entries: readonly TranscriptEntry[]) =>
  entries.reduce((sum, entry) => sum + entryTokens(entry), 0);

export function messagesTokens(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

function messageTokens(message: ModelMessage): number {
  if (message.role === 'assistant') return assistantTokens(message);
  const note = message.role === 'user' ? (message.note ?? '') : '';
  return MESSAGE_TOKENS + textTokens(message.text) + textTokens(note);
}

function assistantTokens(message: Extract<ModelMessage, { role: 'assistant' }>): number {
  const calls = message.toolCalls.map((call) => `${call.id}${call.name}${call.arguments}`);
  const thinking = message.thinking.map((block) => block.text);
  return MESSAGE_TOKENS + textTokens([message.text, ...calls, ...thinking].join(''));
}

/** Images in messages, of which a model is shown `atMost`. */
export function imagesTokens(messages: readonly ModelMessage[], atMost: number): number {
  const count = messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? 0 : (message.images?.length ?? 0)),
    0,
  );
  return Math.min(count, atMost) * IMAGE_TOKENS;
}

/** The factor for the next estimate, after a call estimated at `estimated` really took `actual`. */
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

// Named budgets in tokens, all scaled from the model's context window. A model on the person's own
// machine has a small window and reads slowly, so its budgets are smaller.

export type ModelSize = {
  readonly contextTokens: number;
  readonly local: boolean;
  /** Of the system prompt at most, where a call leaves it less than its own share. */
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
/** Shares of the whole system prompt. */
const CHANNEL_CONTEXT_SHARE = 0.08;
const TOOL_GUIDANCE_SHARE = 0.08;

/** Of the working memory of a conversation, which no prompt holds. */
const WORKING: Budget = { divisor: 200 / 3, minTokens: 300, maxTokens: 15_000 };

export const workingTokens = (contextTokens: number) =>
  scale({ cloud: WORKING, local: WORKING }, { contextTokens, local: false });

export type PromptBudgets = {
  readonly wholeTokens: number;
  readonly filesTokens: number;
  readonly channelContextTokens: number;
  readonly memoryTokens: number;
  readonly skillsTokens: number;
  readonly guidanceTokens: number;
};

export function promptBudgets(model: ModelSize): PromptBudgets {
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
    guidanceTokens: Math.floor(wholeTokens * TOOL_GUIDANCE_SHARE),
  };
}

function scale(budgets: Budgets, { contextTokens, local }: ModelSize): number {
  const { divisor, minTokens, maxTokens } = local ? budgets.local : budgets.cloud;
  return Math.floor(Math.min(maxTokens, Math.max(minTokens, contextTokens / divisor)));
}

/** Estimates err, so a part of the window stays free. */
export const USABLE_CONTEXT_SHARE = 0.85;
/** An answer may not claim the window that the question needs. */
const MAX_OUTPUT_SHARE = 0.2;
/** Of the room for the input; a conversation has the rest for itself. */
const PROMPT_SHARE = 0.25;
/** The same for tools: little of what every window has, more of what is beyond. */
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

/** What the tools and the prompt keep of their shares; tools give way first. */
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
