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
