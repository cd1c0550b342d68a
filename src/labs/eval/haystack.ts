// Finds in a long text: facts at chosen depths of texts of chosen sizes, and questions about all of it.
// The model is given the text itself, or the whole agent finds it with the tools of its memory.

import { textTokens } from '../../agent/rules/tokens.ts';
import { askAgent, attempt, type Benchmark, skipped, type Trial } from './eval.ts';
import { isExact, mean, medianSeconds } from './rules/grade.ts';
import {
  type AggregateQuestion,
  aggregateQuestions,
  type Corpus,
  corpusOf,
  gradeNeedles,
  HAYSTACK_SYSTEM,
  needleQuestion,
  sentenceOf,
} from './rules/haystack.ts';
import { barsOf, type EvalItem, type EvalPlot, known, scoreOf, sumOf } from './rules/result.ts';

type HaystackOptions = {
  readonly seed: number;
  /** Characters of the text. */
  readonly sizes: readonly number[];
  /** Percent of the text before the first fact that is asked for. */
  readonly depths: readonly number[];
  /** Facts asked for at once. */
  readonly needles: number;
  readonly aggregate: boolean;
  /** `text`: the model is shown the corpus; `memory`: the agent has it in its notes. */
  readonly through: 'text' | 'memory';
};

const AGGREGATES = 5;
const TEMPERATURE = 0;
const MIDDLE_PERCENT = 50;
const NOTE_CHARS = 12_000;
const FIRST_NOTE = Date.UTC(2001, 0, 1);
const DAY_MS = 86_400_000;

type Asked = {
  readonly size: number;
  readonly depth: number;
  readonly corpus: Corpus;
  readonly id: string;
  readonly question: string;
  readonly wanted: string;
  readonly group: string;
  grade(answer: string): Pick<EvalItem, 'state' | 'counts'>;
};

export function haystack(options: HaystackOptions): Benchmark {
  const { seed, sizes, depths, needles, aggregate, through } = options;
  const cells = sizes.length * (depths.length + (aggregate ? AGGREGATES : 0));
  return {
    benchmark: 'haystack',
    variant: through,
    seed,
    options: { sizes: sizes.join(' '), depths: depths.join(' '), needles, aggregate },
    planned: cells,
    async *run(trial, signal) {
      for (const asked of questionsOf(options)) {
        yield await (through === 'text'
          ? askModel(trial, asked, signal)
          : askWithNotes(trial, asked, signal));
      }
    },
    summary: (items) => summaryOf(items, options),
  };
}

/** One corpus at a time: a large one is made when its turn comes. */
function* questionsOf({
  seed,
  sizes,
  depths,
  needles,
  aggregate,
}: HaystackOptions): Generator<Asked> {
  for (const size of sizes) {
    for (const depth of depths) {
      const corpus = corpusOf({ seed, chars: size, depthPercent: depth, needles });
      yield needleItem(size, depth, corpus);
    }
    if (!aggregate) continue;
    const corpus = corpusOf({ seed, chars: size, depthPercent: MIDDLE_PERCENT, needles });
    for (const question of aggregateQuestions(seed, corpus)) {
      yield aggregateItem(size, corpus, question);
    }
  }
}

function needleItem(size: number, depth: number, corpus: Corpus): Asked {
  return {
    ...{ size, depth, corpus },
    id: `${size} characters, depth ${depth} %`,
    group: 'facts',
    question: needleQuestion(corpus.needles),
    wanted: corpus.needles.map(sentenceOf).join(' '),
    grade(answer) {
      const found = gradeNeedles(answer, corpus.needles);
      return { state: isExact(found) ? 'right' : 'wrong', counts: { ...found, size, depth } };
    },
  };
}

function aggregateItem(size: number, corpus: Corpus, question: AggregateQuestion): Asked {
  return {
    ...{ size, depth: MIDDLE_PERCENT, corpus },
    id: `${size} characters, ${question.kind}`,
    group: 'aggregates',
    question: question.question,
    wanted: question.wanted,
    grade: (answer) => ({ state: question.isRight(answer) ? 'right' : 'wrong', counts: { size } }),
  };
}

async function askModel({ subject }: Trial, asked: Asked, signal: AbortSignal): Promise<EvalItem> {
  const { corpus, question } = asked;
  const text = `${corpus.text}\n\n---\n\n${question}`;
  const needed = textTokens(text) + subject.maxTokens;
  if (needed > subject.contextTokens) {
    return skipped(
      namesOf(asked),
      `about ${needed} tokens do not fit into ${subject.contextTokens}`,
    );
  }
  return attempt(namesOf(asked), signal, async () => {
    const said = [{ role: 'user' as const, text }];
    const reply = await subject.ask(
      { system: HAYSTACK_SYSTEM, said, temperature: TEMPERATURE },
      signal,
    );
    return { got: reply.text, ms: reply.ms, ...asked.grade(reply.text) };
  });
}

/** Notes of old days, so that none of it stands in the prompt. */
async function askWithNotes(trial: Trial, asked: Asked, signal: AbortSignal): Promise<EvalItem> {
  const bench = await trial.workbench();
  await bench.clear('memory');
  await bench.write(notesOf(asked.corpus.text));
  const question = `Your memory holds notes about people. ${asked.question} Look it up there.`;
  return attempt(namesOf(asked), signal, async () => {
    const { report, ...made } = await askAgent(trial, `haystack ${asked.id}`, question, signal);
    const { state, counts } = asked.grade(report.answer);
    return { ...made, state, counts: { ...made.counts, ...counts } };
  });
}

const namesOf = ({ id, group, wanted }: Asked) => ({ id, group, wanted });

function notesOf(text: string): Readonly<Record<string, string>> {
  const notes: Record<string, string> = {};
  let part = '';
  for (const paragraph of [...text.split('\n\n'), undefined]) {
    if (paragraph === undefined || part.length + paragraph.length > NOTE_CHARS) {
      const at = FIRST_NOTE + Object.keys(notes).length * DAY_MS;
      notes[`memory/${new Date(at).toISOString().slice(0, 10)}.md`] = part;
      part = '';
    }
    part += `${paragraph ?? ''}\n\n`;
  }
  return notes;
}

function summaryOf(items: readonly EvalItem[], { sizes, depths }: HaystackOptions) {
  const facts = items.filter(({ group, state }) => group === 'facts' && isAnswered(state));
  const [right, named, wanted] = ['right', 'named', 'wanted'].map((name) => sumOf(facts, name));
  const aggregates = scoreOf(items.filter(({ group }) => group === 'aggregates'));
  const grid: EvalPlot = {
    kind: 'grid',
    title: 'facts found, by size and depth',
    rows: depths.map((depth) => `${depth} %`),
    columns: sizes.map(String),
    cells: facts.map(({ counts }) => ({
      row: `${counts['depth']} %`,
      column: String(counts['size']),
      value: (counts['right'] ?? 0) / Math.max(1, counts['wanted'] ?? 1),
    })),
  };
  return {
    figures: known({
      precision: named ? (right ?? 0) / named : undefined,
      recall: wanted ? (right ?? 0) / wanted : undefined,
      'aggregate questions right': aggregates.rate,
      'median seconds': medianSeconds(
        items.filter(({ state }) => isAnswered(state)).map(({ ms }) => ms),
      ),
      'model calls a question': mean(items.flatMap(({ counts }) => counts['model calls'] ?? [])),
    }),
    plots: [...(facts.length === 0 ? [] : [grid]), ...barsOf('right by kind of question', items)],
  };
}

const isAnswered = (state: EvalItem['state']) => state === 'right' || state === 'wrong';
