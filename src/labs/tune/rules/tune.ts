// The questions and tasks of `nanobot tune`, and the choice among measured models: those below the
// requirements are excluded, the others scored.

import { z } from 'zod';
import { CHARS_PER_TOKEN } from '../../../agent/rules/tokens.ts';
import { isObject, parseJson } from '../../../lib/json/json.ts';

const share = z.number().min(0).max(1);

const modelMeasureSchema = z.strictObject({
  /** With its prefix. */
  model: z.string().min(1).max(200),
  contextTokens: z.int().min(1),
  /** Share of questions answered correctly. */
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

/** The output of `nanobot tune --json` without its verdict. */
export const measureFileSchema = z.object({
  version: z.literal(1),
  measured: z.array(modelMeasureSchema).min(1).max(1000),
});

export type ModelMeasure = Readonly<z.infer<typeof modelMeasureSchema>>;

type TuneDemands = Readonly<typeof USUAL_DEMANDS>;

/** Below these a conversation with tools is no pleasure. */
export const USUAL_DEMANDS = {
  minQuality: 0.5,
  minToolSuccess: 0.5,
  maxOverflowRate: 0.5,
  maxFirstTokenMs: 20_000,
  minTokensPerSecond: 3,
  minContextTokens: 4096,
};

export type TuneVerdict = ReturnType<typeof tuneVerdict>;
export type Weighed = TuneVerdict['suitable'][number];

const WEIGHTS = { quality: 0.4, tools: 0.3, overflow: 0.1, speed: 0.1, firstToken: 0.1 } as const;
/** Faster than people read: more is no better. */
const FAST_TOKENS_PER_SECOND = 40;
/** At this delay the score for promptness is one half. */
const HALF_PROMPT_MS = 2000;

/** The suitable ones with a score from 0 to 1, best first. */
export function tuneVerdict(measured: readonly ModelMeasure[], demands: TuneDemands) {
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
  return [
    one.quality < minQuality &&
      `correct answers ${percent(one.quality)}, minimum ${percent(minQuality)}`,
    one.toolSuccess < minToolSuccess &&
      `correct tool calls ${percent(one.toolSuccess)}, minimum ${percent(minToolSuccess)}`,
    one.overflowRate > maxOverflowRate &&
      `long questions lost ${percent(one.overflowRate)}, maximum ${percent(maxOverflowRate)}`,
    one.firstTokenMs > maxFirstTokenMs &&
      `first token after ${Math.round(one.firstTokenMs)} ms, maximum ${maxFirstTokenMs}`,
    one.tokensPerSecond < minTokensPerSecond &&
      `${one.tokensPerSecond.toFixed(1)} tokens/s, minimum ${minTokensPerSecond}`,
    one.contextTokens < minContextTokens &&
      `context of ${one.contextTokens} tokens, minimum ${minContextTokens}`,
  ].filter((reason) => reason !== false);
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

// The questions of a measurement: short ones with checkable answers, tasks for a single call, and a
// long text with a word hidden in its middle.

/** `right`: matches a right answer and no wrong one. */
export type TuneQuestion = {
  readonly text: string;
  readonly right: RegExp;
};

export const TUNE_QUESTIONS: readonly TuneQuestion[] = [
  { text: 'What is 17 + 26? Reply with the number only.', right: /(?<!\d)43(?!\d)/ },
  { text: 'What is 9 times 8? Reply with the number only.', right: /(?<!\d)72(?!\d)/ },
  {
    text: 'A train leaves at 14:50 and takes 35 minutes. When does it arrive? Reply with the time only.',
    right: /15[:.]25|3[:.]25/,
  },
  {
    text: 'Tom is taller than Mia, and Mia is taller than Jo. Who is the smallest? Reply with the name only.',
    right: /^\W*jo\W*$|smallest\W+(?:is|:)\W+jo\b|\bjo is the smallest/i,
  },
  {
    text: 'Reply with exactly these three words in this order, in lower case, separated by commas: red, blue, green',
    right: /^\W*red, ?blue, ?green\W*$/,
  },
  {
    text: 'Reply with a JSON object that has the one key "city" with the value "Lisbon", and nothing else.',
    right: /^\s*(?:```(?:json)?\s*)?\{\s*"city"\s*:\s*"Lisbon"\s*\}\s*(?:```)?\s*$/,
  },
  {
    text: 'The meeting was moved from Tuesday to Thursday and from room 4 to room 12. In which room is it? Reply with the number only.',
    right: /(?<!\d)12(?!\d)/,
  },
  {
    text: 'Translate into German, one word only: house',
    right: /^\W*(?:das )?haus\W*$/i,
  },
];

/** A task that needs one call. */
type TuneTask = {
  readonly text: string;
  readonly tool: string;
  /** Required values of the arguments as text; compared without case and surrounding spaces. */
  readonly wanted: Readonly<Record<string, string>>;
};

const toolOf = (
  name: string,
  description: string,
  parameters: Readonly<Record<string, { readonly type: string; readonly description: string }>>,
) => ({
  ...{ name, description },
  schema: { type: 'object', properties: parameters, required: Object.keys(parameters) },
});
const textOf = (description: string) => ({ type: 'string', description });

export const TUNE_TOOLS = [
  toolOf('get_weather', 'The weather of a city today.', { city: textOf('Name of the city.') }),
  toolOf('set_timer', 'Sets a timer.', {
    minutes: { type: 'integer', description: 'How long, in minutes.' },
    label: textOf('What for.'),
  }),
  toolOf('read_file', 'Reads a text file.', { path: textOf('Path of the file.') }),
];

export const TUNE_TASKS: readonly TuneTask[] = [
  { text: 'What is the weather in Oslo today?', tool: 'get_weather', wanted: { city: 'oslo' } },
  {
    text: 'Set a timer of 12 minutes for the tea.',
    tool: 'set_timer',
    wanted: { minutes: '12', label: 'tea' },
  },
  {
    text: 'Read the file notes/today.md and tell me what is in it.',
    tool: 'read_file',
    wanted: { path: 'notes/today.md' },
  },
  {
    text: 'I am about to leave for Lima. Do I need an umbrella there today?',
    tool: 'get_weather',
    wanted: { city: 'lima' },
  },
];

/** Whether this call fulfils the task. `given`: JSON, as the model wrote it. */
export function doesTask({ tool, wanted }: TuneTask, name: string, given: string): boolean {
  const args = parseJson(given);
  if (name !== tool || !isObject(args)) return false;
  return Object.entries(wanted).every(([key, value]) => {
    const said = args[key];
    if (typeof said !== 'string' && typeof said !== 'number') return false;
    const text = String(said).trim().toLowerCase();
    return /^\d+$/.test(value) ? text === value : text.includes(value);
  });
}

const CODE_WORD = 'heron-41';
const FILLER = [
  'The tide came in late and nobody hurried along the pier.',
  'A crate of lemons stood open beside the door of the shed.',
  'The ferry was repainted in the winter, and the old name was kept.',
  'In the evening the lamps along the wall were lit one after the other.',
] as const;

/** A question of about this many tokens. */
export function longQuestion(tokens: number): TuneQuestion {
  const half: string[] = [];
  const halfChars = Math.max(0, (tokens * CHARS_PER_TOKEN) / 2);
  for (let chars = 0, at = 0; chars < halfChars; at += 1) {
    const sentence = FILLER[at % FILLER.length] ?? FILLER[0];
    half.push(sentence);
    chars += sentence.length + 1;
  }
  const filler = half.join(' ');
  return {
    text: `${filler} The code word of the lighthouse is ${CODE_WORD}. ${filler}\n\nWhat is the code word of the lighthouse? Reply with the code word only.`,
    right: new RegExp(CODE_WORD, 'i'),
  };
}
