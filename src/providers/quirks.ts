// How each vendor of the OpenAI dialect is asked to think, or not to; one small pure rule each.

import { modelVersion } from './manners.ts';
import type { ModelRequest } from './provider.ts';

/** Body parameters beyond the dialect's common ones. */
export type ExtraParameters = Readonly<Record<string, unknown>>;

export type Effort = 'low' | 'medium' | 'high';

const LOW_EFFORT_TOKENS = 2048;
const MEDIUM_EFFORT_TOKENS = 12_288;

/** Vendors that think by effort get the one nearest to the budget. */
export function effortOf(budgetTokens: number): Effort {
  if (budgetTokens <= LOW_EFFORT_TOKENS) return 'low';
  return budgetTokens <= MEDIUM_EFFORT_TOKENS ? 'medium' : 'high';
}

const effort = (budgetTokens: number): ExtraParameters =>
  budgetTokens > 0 ? { reasoning_effort: effortOf(budgetTokens) } : {};

/** From GPT-5.4 on, chat completions takes tools only with `reasoning_effort: none`. */
const TOOLS_WITHOUT_EFFORT_FROM = 5.4;

export function openaiThinking(request: ModelRequest): ExtraParameters {
  const version = modelVersion(request.model, /^gpt-(\d+(?:\.\d+)?)/);
  if (version >= TOOLS_WITHOUT_EFFORT_FROM && request.tools.length > 0) {
    return { reasoning_effort: 'none' };
  }
  const thinks = version >= 5 || /^(o\d|gemini-)/.test(request.model);
  return thinks ? effort(request.thinkingBudget ?? 0) : {};
}

export function groqThinking(request: ModelRequest): ExtraParameters {
  return /gpt-oss/.test(request.model) ? effort(request.thinkingBudget ?? 0) : {};
}

/** DeepSeek and Zhipu think unless told not to; GLM from 5.3 on cannot be told. */
export function thinkingSwitch(request: ModelRequest): ExtraParameters {
  if ((request.thinkingBudget ?? 0) > 0) return { thinking: { type: 'enabled' } };
  const always = modelVersion(request.model, /^glm-(\d+(?:\.\d+)?)/) >= 5.3;
  return always ? {} : { thinking: { type: 'disabled' } };
}

/** Ollama and LM Studio think by effort; models made to think do so unless they are told `none`. */
export function localEffort({ capabilities, thinkingBudget = 0 }: ModelRequest): ExtraParameters {
  if (capabilities?.thinking !== true) return {};
  return { reasoning_effort: thinkingBudget > 0 ? effortOf(thinkingBudget) : 'none' };
}

/** llama.cpp and vLLM hand it to the chat template of the model. */
export function templateThinking({ capabilities, thinkingBudget = 0 }: ModelRequest) {
  if (capabilities?.thinking !== true) return {};
  return { chat_template_kwargs: { enable_thinking: thinkingBudget > 0 } };
}
