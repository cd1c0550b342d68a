// The table of vendors with addresses and key variables, the known quirks of their APIs, the quirks
// learned from their errors, and calls in the form that a model accepts.

import type { ProviderName } from '../kernel/config/config.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import { t } from '../lib/texts.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';
import type { ModelCapabilities } from './rules/model-names.ts';

/** Body parameters beyond the common ones of the dialect. */
type ExtraParameters = Readonly<Record<string, unknown>>;

type Effort = 'low' | 'medium' | 'high';

const LOW_EFFORT_TOKENS = 2048;
const MEDIUM_EFFORT_TOKENS = 12_288;

/** The effort nearest to the budget, for vendors that control thinking by effort. */
export function effortOf(budgetTokens: number): Effort {
  if (budgetTokens <= LOW_EFFORT_TOKENS) return 'low';
  return budgetTokens <= MEDIUM_EFFORT_TOKENS ? 'medium' : 'high';
}

const effort = (budgetTokens: number): ExtraParameters =>
  budgetTokens > 0 ? { reasoning_effort: effortOf(budgetTokens) } : {};

/** From GPT-5.4 on, chat completions accepts tools only with `reasoning_effort: none`. */
const TOOLS_WITHOUT_EFFORT_FROM = 5.4;

function openaiThinking(request: ModelRequest): ExtraParameters {
  const version = modelVersion(request.model, /^gpt-(\d+(?:\.\d+)?)/);
  if (version >= TOOLS_WITHOUT_EFFORT_FROM && request.tools.length > 0) {
    return { reasoning_effort: 'none' };
  }
  const thinks = version >= 5 || /^(o\d|gemini-)/.test(request.model);
  return thinks ? effort(request.thinkingBudget ?? 0) : {};
}

function groqThinking(request: ModelRequest): ExtraParameters {
  return /gpt-oss/.test(request.model) ? effort(request.thinkingBudget ?? 0) : {};
}

/** DeepSeek and Zhipu think unless told not to; GLM from 5.3 on always thinks. */
function thinkingSwitch(request: ModelRequest): ExtraParameters {
  if ((request.thinkingBudget ?? 0) > 0) return { thinking: { type: 'enabled' } };
  const always = modelVersion(request.model, /^glm-(\d+(?:\.\d+)?)/) >= 5.3;
  return always ? {} : { thinking: { type: 'disabled' } };
}

/** Ollama and LM Studio control thinking by effort; thinking models think unless told `none`. */
function localEffort({ capabilities, thinkingBudget = 0 }: ModelRequest): ExtraParameters {
  if (capabilities?.thinking !== true) return {};
  return { reasoning_effort: thinkingBudget > 0 ? effortOf(thinkingBudget) : 'none' };
}

/** llama.cpp and vLLM pass it to the chat template of the model. */
function templateThinking({ capabilities, thinkingBudget = 0 }: ModelRequest) {
  if (capabilities?.thinking !== true) return {};
  return { chat_template_kwargs: { enable_thinking: thinkingBudget > 0 } };
}

// What a local server refused for a model, whatever its name promised: later requests use the form
// that the server accepts. Learned anew by each registry; a configured capability avoids the first
// refusal.

/** The wording of Ollama, vLLM and llama.cpp. */
const NO_TOOLS =
  /does not support (?:tools|tool|function)|requires --(?:enable-auto-tool-choice|jinja)|tool[\w -]*(?:is|are) not supported/i;
/** The wording of models' chat templates, which servers pass on. */
const BY_TURNS = /roles? must alternate|only user(?:,| and) assistant(?: and system)? roles/i;

export class Manners {
  #refusesTools = false;
  #wantsTurns = false;

  /** The known capabilities without what was refused. */
  of(known: ModelCapabilities): ModelCapabilities {
    const isText = this.#refusesTools && known.toolCalling === 'native';
    return {
      ...known,
      ...(isText ? { toolCalling: 'text' } : {}),
      ...(this.#wantsTurns ? { strictAlternation: true } : {}),
    };
  }

  /** True if it was such a refusal, and a new one. */
  learn(error: unknown): boolean {
    if (!(error instanceof ProviderError)) return false;
    const isAboutTools = !this.#refusesTools && NO_TOOLS.test(error.message);
    const isAboutTurns = !this.#wantsTurns && BY_TURNS.test(error.message);
    this.#refusesTools ||= isAboutTools;
    this.#wantsTurns ||= isAboutTurns;
    return isAboutTools || isAboutTurns;
  }
}

type Speaker = {
  readonly name: string;
  readonly local: boolean;
  readonly capabilities: ModelCapabilities;
  readonly contextTokens: number;
  readonly manners: Manners;
  readonly vendor: { readonly label: string };
};

/** `inner` is called once for each try and each correction. */
export function speaking(inner: LLMProvider, speaker: Speaker): LLMProvider {
  const { local, vendor, manners } = speaker;
  if (!local && takesAll(speaker)) return inner;
  return {
    name: inner.name,
    async *stream(request, signal) {
      // Each refusal is learned once, so the loop ends.
      for (let isBegun = false; ; ) {
        try {
          for await (const event of asked(inner, speaker, request, signal)) {
            isBegun = true;
            yield event;
          }
          return;
        } catch (error) {
          if (isBegun || signal.aborted || !manners.learn(error)) throw error;
        }
        const reason = t`${vendor.label} did not take the question in this form`;
        yield { type: 'retrying', reason, delayMs: 0 };
      }
    },
  };
}

const takesAll = ({ capabilities: { toolCalling, strictAlternation } }: Speaker): boolean =>
  toolCalling === 'native' && !strictAlternation;

async function* asked(
  inner: LLMProvider,
  known: Speaker,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, void> {
  const speaker = { ...known, capabilities: known.manners.of(known.capabilities) };
  if (takesAll(speaker) && request.tools.length === 0) return yield* inner.stream(request, signal);
  const { withTextTools } = await import('./text-tools/text-tools.ts');
  yield* withTextTools(inner, speaker).stream(request, signal);
}

// Version numbers inside model names, for rules that changed with a model's generation.

/** The number of the pattern's first group; 0 if there is none. `5.4`, `5`. */
function modelVersion(model: string, pattern: RegExp): number {
  return Number(pattern.exec(model.toLowerCase())?.[1] ?? 0);
}

type ClaudeTraits = {
  /** How thinking is requested; the newest models choose their own budget. */
  readonly thinking: 'budget' | 'adaptive';
  /** Accepts `temperature`. */
  readonly sampling: boolean;
};

/** `claude-opus-4-7` and `claude-sonnet-5`; the older `claude-3-5-sonnet` has the number first. */
const CLAUDE = /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?(?!\d)/;

/** Adaptive thinking from 4.6, no sampling from 4.7 (Anthropic's migration guides). */
export function claudeTraits(model: string): ClaudeTraits {
  const match = CLAUDE.exec(model.toLowerCase());
  const version = Number(match?.[1] ?? 0) + Number(match?.[2] ?? 0) / 100;
  return {
    thinking: version >= 4.06 ? 'adaptive' : 'budget',
    sampling: version < 4.07 && !/mythos|fable/.test(model),
  };
}

// One row per vendor: its address, the environment variables for its key, and the few differences
// of its dialect. Another OpenAI-compatible vendor is another row here.

export type Vendor = {
  readonly name: ProviderName;
  /** The name for people. */
  readonly label: string;
  readonly apiBase: string;
  /**
   * Environment variables that may hold the key, in order of precedence; local servers need none.
   */
  readonly keyVariables: readonly string[];
  readonly dialect: 'openai' | 'anthropic';
  readonly quirks: Quirks;
};

/** Differences from the common OpenAI dialect; absent: none. */
export type Quirks = {
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Does not know `stream_options`; sends usage by itself or not at all. */
  readonly noUsageOption?: true;
  /** Requires the thinking of earlier tool calls as `reasoning_content`. */
  readonly echoesReasoning?: true;
  /** Signs tool calls under `extra_content.google` and requires the signatures back. */
  readonly signsToolCalls?: true;
  /** Writes its thinking into the text, between think tags. */
  readonly thinkTags?: true;
  /** Accepts Anthropic's cache marks for models whose name matches. */
  readonly cacheMarksFor?: RegExp;
  /** Supports `prompt_cache_key` at its own address. */
  readonly takesCacheKey?: true;
  /** Temperature must be omitted for models whose name matches. */
  readonly fixedTemperature?: RegExp;
  /** Images that it accepts in one call, if fewer than are sent to others. */
  readonly maxImages?: number;
  readonly extras?: (request: ModelRequest) => ExtraParameters;
};

const cloud = (
  name: ProviderName,
  label: string,
  apiBase: string,
  keyVariable: string,
  quirks: Quirks = {},
): Vendor => ({ name, label, apiBase, keyVariables: [keyVariable], dialect: 'openai', quirks });

const local = (name: ProviderName, label: string, port: number, quirks: Quirks): Vendor => ({
  name,
  label,
  apiBase: `http://127.0.0.1:${port}/v1`,
  keyVariables: [],
  dialect: 'openai',
  quirks: { thinkTags: true, ...quirks },
});

const ROWS: readonly Vendor[] = [
  {
    name: 'anthropic',
    label: 'Anthropic',
    apiBase: 'https://api.anthropic.com',
    keyVariables: ['ANTHROPIC_API_KEY'],
    dialect: 'anthropic',
    quirks: {},
  },
  cloud('openai', 'OpenAI', 'https://api.openai.com/v1', 'OPENAI_API_KEY', {
    maxTokensField: 'max_completion_tokens',
    fixedTemperature: /^(o\d|gpt-[5-9])/,
    takesCacheKey: true,
    extras: openaiThinking,
  }),
  cloud('openrouter', 'OpenRouter', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY', {
    cacheMarksFor: /^anthropic\//,
    extras: ({ thinkingBudget = 0 }) =>
      thinkingBudget > 0 ? { reasoning: { max_tokens: thinkingBudget } } : {},
  }),
  cloud('deepseek', 'DeepSeek', 'https://api.deepseek.com', 'DEEPSEEK_API_KEY', {
    echoesReasoning: true,
    extras: thinkingSwitch,
  }),
  cloud(
    'gemini',
    t`Google Gemini`,
    'https://generativelanguage.googleapis.com/v1beta/openai',
    'GEMINI_API_KEY',
    { signsToolCalls: true, extras: openaiThinking },
  ),
  cloud('groq', 'Groq', 'https://api.groq.com/openai/v1', 'GROQ_API_KEY', {
    maxImages: 5,
    extras: groqThinking,
  }),
  cloud('zhipu', 'Zhipu', 'https://api.z.ai/api/paas/v4', 'ZHIPU_API_KEY', {
    noUsageOption: true,
    extras: thinkingSwitch,
  }),
  cloud(
    'zhipuCoding',
    t`Zhipu Coding`,
    'https://api.z.ai/api/coding/paas/v4',
    'ZHIPU_CODING_API_KEY',
    { noUsageOption: true, extras: thinkingSwitch },
  ),
  cloud('huggingface', t`Hugging Face`, 'https://router.huggingface.co/v1', 'HF_TOKEN', {
    thinkTags: true,
  }),
  local('ollama', 'Ollama', 11_434, { extras: localEffort }),
  local('lmstudio', 'LM Studio', 1234, { extras: localEffort }),
  local('vllm', 'vLLM', 8000, { extras: templateThinking }),
  local('local', t`the local model server`, 8080, { extras: templateThinking }),
];

const BY_NAME: ReadonlyMap<ProviderName, Vendor> = new Map(ROWS.map((row) => [row.name, row]));

export function vendorOf(name: ProviderName): Vendor {
  const row = BY_NAME.get(name);
  if (row === undefined) throw new Error(`no vendor row for ${name}`);
  return row;
}
