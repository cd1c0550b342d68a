// Opens a home for `nanobot tune` and measures one model: accuracy, tool calls, speed and long
// questions.

import { textTokens } from '../../agent/rules/tokens.ts';
import { chargedMeter } from '../../agent/side-model.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { chatId, DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { discoverLocalModels } from '../../providers/local-servers.ts';
import type { CallMeter, ModelEvent, ModelHandle, ToolSpec } from '../../providers/provider.ts';
import { prefixOf } from '../../providers/rules/model-names.ts';
import { openPurse, type PurseWish } from '../eval/build-eval.ts';
import { median } from '../eval/rules/grade.ts';
import { EVAL_ROLE } from '../eval/spending.ts';
import { EVAL_CHANNEL } from '../eval/workbench.ts';
import {
  doesTask,
  longQuestion,
  type ModelMeasure,
  TUNE_QUESTIONS,
  TUNE_TASKS,
  TUNE_TOOLS,
  type TuneQuestion,
} from './rules/tune.ts';

type MeasureDeps = {
  readonly handle: ModelHandle;
  readonly clock: Clock;
  /** Tokens of the question, and the longest answer. */
  meter(inputTokens: number, maxTokens: number): CallMeter;
  /** Called after each model call. */
  progress(done: number, planned: number): void;
};

type Timed = {
  readonly event: Extract<ModelEvent, { readonly type: 'finished' }>;
  readonly firstMs: number;
  /** Undefined where the answer was too short to measure. */
  readonly tokensPerSecond: number | undefined;
};

type Ask = (asking: Asking) => Promise<Timed['event']>;
type Asking = { readonly text: string; readonly tools?: readonly ToolSpec[] };

/** Leaves room for thinking before a one-word answer. */
const ANSWER_TOKENS = 1024;
const LONG_ANSWER = 'Describe a harbour in the early morning in eight sentences.';
/** Shares of the context window that long questions fill. */
const FILLS: readonly number[] = [0.5, 0.8];
/** Longer ones take a small machine many minutes. */
const MAX_LONG_TOKENS = 24_000;
const MIN_TIMED_TOKENS = 20;
const CALLS = 1 + TUNE_QUESTIONS.length + TUNE_TASKS.length + FILLS.length;

/** @throws ProviderError, SpendingRefusedError, the signal's reason */
export async function measureModel(deps: MeasureDeps, signal: AbortSignal): Promise<ModelMeasure> {
  const { handle } = deps;
  const timed: Timed[] = [];
  const ask: Ask = async (asking) => {
    const answer = await askOnce(deps, asking, signal);
    timed.push(answer);
    deps.progress(timed.length, CALLS);
    return answer.event;
  };
  await ask({ text: LONG_ANSWER });
  const quality = await shareOf(TUNE_QUESTIONS, async (question) =>
    isRight(question, await ask(question)),
  );
  const toolSuccess = await shareOf(TUNE_TASKS, async (task) => {
    const { toolCalls } = await ask({ text: task.text, tools: TUNE_TOOLS });
    const [call, more] = toolCalls;
    return call !== undefined && more === undefined && doesTask(task, call.name, call.arguments);
  });
  const firstTokenMs = Math.round(median(timed.map(({ firstMs }) => firstMs)) ?? 0);
  const tokensPerSecond = speedOf(timed);
  const held = await shareOf(FILLS, (part) => isHeld(part * handle.contextTokens, ask));
  return {
    model: handle.name,
    contextTokens: handle.contextTokens,
    ...{ quality, toolSuccess, overflowRate: 1 - held, firstTokenMs, tokensPerSecond },
  };
}

async function isHeld(tokens: number, ask: Ask): Promise<boolean> {
  const question = longQuestion(Math.min(MAX_LONG_TOKENS, tokens) - ANSWER_TOKENS);
  try {
    return isRight(question, await ask(question));
  } catch (error) {
    if (error instanceof ProviderError && error.failure.kind === 'context_overflow') return false;
    throw error;
  }
}

async function askOnce(
  { handle, clock, meter }: MeasureDeps,
  { text, tools = [] }: Asking,
  signal: AbortSignal,
): Promise<Timed> {
  let began = clock.monotonic();
  let firstAt: number | undefined;
  const request = {
    system: [{ text: 'You answer shortly and exactly.', stable: true }],
    messages: [{ role: 'user' as const, text }],
    tools,
    maxTokens: ANSWER_TOKENS,
    temperature: 0,
  };
  const charged = meter(textTokens(text), ANSWER_TOKENS);
  // Waiting for a slot of the server does not count as the model's time.
  const begin: CallMeter['begin'] = (...given) => {
    began = clock.monotonic();
    return charged.begin(...given);
  };
  for await (const event of handle.stream(request, signal, { ...charged, begin })) {
    if (event.type === 'retrying') firstAt = undefined;
    else if (event.type !== 'finished') firstAt ??= clock.monotonic();
    else return timedFrom(event, began, firstAt ?? clock.monotonic(), clock.monotonic());
  }
  throw new ProviderError('stream ended without a final event', {
    failure: { kind: 'malformed' },
    provider: handle.name,
    model: handle.name,
  });
}

function timedFrom(event: Timed['event'], began: number, firstAt: number, endedAt: number): Timed {
  const tokens = event.usage?.outputTokens ?? textTokens(event.text);
  const seconds = (endedAt - firstAt) / 1000;
  const isLong = tokens >= MIN_TIMED_TOKENS && seconds > 0;
  return {
    event,
    firstMs: firstAt - began,
    tokensPerSecond: isLong ? tokens / seconds : undefined,
  };
}

/** Where every answer came at once, the speed is the maximum. */
function speedOf(timed: readonly Timed[]): number {
  const known = timed.flatMap(({ tokensPerSecond }) => tokensPerSecond ?? []);
  return Math.min(MAX_SPEED, median(known) ?? MAX_SPEED);
}

const MAX_SPEED = 10_000;

const isRight = ({ right }: TuneQuestion, { stop, text }: Timed['event']) =>
  stop === 'end' && right.test(text.trim());

async function shareOf<T>(
  all: readonly T[],
  isGood: (one: T) => Promise<boolean>,
): Promise<number> {
  let good = 0;
  for (const one of all) if (await isGood(one)) good += 1;
  return good / all.length;
}

export type Tuning = {
  /** The models of servers that respond now, with prefix. */
  localModels(signal: AbortSignal): Promise<readonly string[]>;
  /** @throws ProviderError, SpendingRefusedError, the signal's reason */
  measure(
    model: string,
    progress: MeasureDeps['progress'],
    signal: AbortSignal,
  ): Promise<ModelMeasure>;
};

const PAYER = {
  chat: { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId('tune') },
  sender: { kind: 'system', source: 'webhook' },
} as const;

/** @throws HomeLockedError where a gateway runs in this home, StoreError */
export async function openTuning(
  wish: PurseWish,
  resources: AsyncDisposableStack,
): Promise<Tuning> {
  const { models, cost, clock } = await openPurse(wish, resources);
  return {
    async localModels(signal) {
      const servers = await discoverLocalModels({ at: models.localServers(), signal });
      return servers.flatMap((server) =>
        server.models.map((model) => `${prefixOf(server.vendor)}/${model}`),
      );
    },
    async measure(model, progress, signal) {
      const meter = (inputTokens: number, maxTokens: number) =>
        chargedMeter(cost.guard, PAYER, {
          ...{ role: EVAL_ROLE, maxTokens },
          inputTokens: () => inputTokens,
        });
      const local = models.localModel(model);
      await local?.site.warmUp(local.model, { meter: meter(1, 1) }, signal);
      const handle = models.resolve(model, 'once');
      return measureModel({ handle, clock, meter, progress }, signal);
    },
  };
}
