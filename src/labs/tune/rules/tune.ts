// Which of several measured models to use: what falls short of the demands is out, the rest are
// weighed against each other. The figures come from measuring or from a file.

import { z } from 'zod';

const share = z.number().min(0).max(1);

export const modelMeasureSchema = z.strictObject({
  /** With its prefix. */
  model: z.string().min(1).max(200),
  contextTokens: z.int().min(1),
  /** Share of questions answered rightly. */
  quality: share,
  /** Share of tasks in which the right tool was called with the right arguments. */
  toolSuccess: share,
  /** Share of long questions that were refused, cut off or answered without their middle. */
  overflowRate: share,
  /** From the question to the first piece of the answer, median, milliseconds. */
  firstTokenMs: z.number().min(0),
  /** Of answers, median. */
  tokensPerSecond: z.number().min(0),
});

/** What `nanobot tune --json` prints, its verdict left aside. */
export const measureFileSchema = z.object({
  version: z.literal(1),
  measured: z.array(modelMeasureSchema).min(1).max(1000),
});

export type ModelMeasure = Readonly<z.infer<typeof modelMeasureSchema>>;

export type TuneDemands = {
  readonly minQuality: number;
  readonly minToolSuccess: number;
  readonly maxOverflowRate: number;
  readonly maxFirstTokenMs: number;
  readonly minTokensPerSecond: number;
  readonly minContextTokens: number;
};

/** Below these a conversation with tools is no pleasure. */
export const USUAL_DEMANDS: TuneDemands = {
  minQuality: 0.5,
  minToolSuccess: 0.5,
  maxOverflowRate: 0.5,
  maxFirstTokenMs: 20_000,
  minTokensPerSecond: 3,
  minContextTokens: 4096,
};

export type Weighed = ModelMeasure & {
  /** 0 to 1. */
  readonly score: number;
};

export type TuneVerdict = {
  /** Best first. */
  readonly suitable: readonly Weighed[];
  readonly rejected: readonly { readonly model: string; readonly reasons: readonly string[] }[];
};

const WEIGHTS = { quality: 0.4, tools: 0.3, overflow: 0.1, speed: 0.1, firstToken: 0.1 } as const;
/** Faster than people read: more is no better. */
const FAST_TOKENS_PER_SECOND = 40;
/** After this wait the answer counts half as prompt. */
const HALF_PROMPT_MS = 2000;

export function tuneVerdict(measured: readonly ModelMeasure[], demands: TuneDemands): TuneVerdict {
  const judged = measured.map((one) => ({ one, reasons: shortfalls(one, demands) }));
  const suitable = judged
    .filter(({ reasons }) => reasons.length === 0)
    .map(({ one }) => ({ ...one, score: scoreOf(one) }))
    .sort((a, b) => b.score - a.score || (a.model < b.model ? -1 : 1));
  const rejected = judged
    .filter(({ reasons }) => reasons.length > 0)
    .map(({ one, reasons }) => ({ model: one.model, reasons }));
  return { suitable, rejected };
}

function shortfalls(one: ModelMeasure, demands: TuneDemands): readonly string[] {
  const { minQuality, minToolSuccess, maxOverflowRate } = demands;
  const { maxFirstTokenMs, minTokensPerSecond, minContextTokens } = demands;
  const checks: readonly (readonly [isShort: boolean, reason: string])[] = [
    [one.quality < minQuality, `${percent(one.quality)} right, ${percent(minQuality)} asked`],
    [
      one.toolSuccess < minToolSuccess,
      `tools called rightly ${percent(one.toolSuccess)}, ${percent(minToolSuccess)} asked`,
    ],
    [
      one.overflowRate > maxOverflowRate,
      `long questions lost ${percent(one.overflowRate)}, at most ${percent(maxOverflowRate)} asked`,
    ],
    [
      one.firstTokenMs > maxFirstTokenMs,
      `begins after ${Math.round(one.firstTokenMs)} ms, at most ${maxFirstTokenMs} asked`,
    ],
    [
      one.tokensPerSecond < minTokensPerSecond,
      `${one.tokensPerSecond.toFixed(1)} tokens/s, ${minTokensPerSecond} asked`,
    ],
    [
      one.contextTokens < minContextTokens,
      `context of ${one.contextTokens} tokens, ${minContextTokens} asked`,
    ],
  ];
  return checks.filter(([isShort]) => isShort).map(([, reason]) => reason);
}

function scoreOf(one: ModelMeasure): number {
  return (
    WEIGHTS.quality * one.quality +
    WEIGHTS.tools * one.toolSuccess +
    WEIGHTS.overflow * (1 - one.overflowRate) +
    WEIGHTS.speed * Math.min(1, one.tokensPerSecond / FAST_TOKENS_PER_SECOND) +
    WEIGHTS.firstToken * (HALF_PROMPT_MS / (HALF_PROMPT_MS + one.firstTokenMs))
  );
}

const percent = (part: number) => `${Math.round(part * 100)} %`;
