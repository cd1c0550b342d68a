// The haystack benchmark: facts at chosen depths of texts of chosen sizes, and questions about the
// whole text. The model gets the text itself, or the agent finds the facts with its memory tools.

import { textTokens } from '../../agent/rules/tokens.ts';
import { isExact, mean, medianSeconds } from './rules/grade.ts';
import {
  aggregateQuestions,
  type Corpus,
  corpusOf,
  gradeNeedles,
  HAYSTACK_SYSTEM,
  needleQuestion,
  sentenceOf,
} from './rules/haystack.ts';
import { barsOf, type EvalItem, type EvalPlot, known, scoreOf, sumOf } from './rules/result.ts';
import type { Benchmark, EvalTask, Graded, Trial } from './run-eval.ts';

export type HaystackOptions = {
  readonly seed: number;
  /** Characters of the text. */
  readonly sizes: readonly number[];
  /** Percent of the text before the first needle. */
  readonly depths: readonly number[];
  /** Number of facts per question. */
  readonly needles: number;
  readonly aggregate: boolean;
  /** `text`: the text is in the prompt; `memory`: it is in the agent's notes. */
  readonly through: 'text' | 'memory';
};

const AGGREGATES = 5;
const TEMPERATURE = 0;
const MIDDLE_PERCENT = 50;
const NOTE_CHARS = 12_000;
const FIRST_NOTE = Date.UTC(2001, 0, 1);
const DAY_MS = 86_400_000;

/** A question about one text; `grade` grades the answer. */
type Asked = Pick<EvalTask, 'id' | 'group' | 'wanted'> & {
  readonly corpus: Corpus;
  readonly question: string;
  grade(answer: string): Pick<EvalItem, 'state' | 'counts'>;
};

export function haystack(options: HaystackOptions): Benchmark {
  const { seed, sizes, depths, needles, aggregate, through } = options;
  const run = through === 'text' ? askModel : askWithNotes;
  return {
    benchmark: 'haystack',
    variant: through,
    seed,
    options: { sizes: sizes.join(' '), depths: depths.join(' '), needles, aggregate },
    planned: sizes.length * (depths.length + (aggregate ? AGGREGATES : 0)),
    *tasks() {
      for (const asked of questionsOf(options)) {
        const { id, group, wanted } = asked;
        yield { id, group, wanted, run: (trial, signal) => run(trial, asked, signal) };
      }
    },
    summary: (items) => summaryOf(items, options),
  };
}

/** One corpus at a time, because they are large. */
function* questionsOf(options: HaystackOptions): Generator<Asked> {
  const { seed, sizes, depths, needles, aggregate } = options;
  for (const size of sizes) {
    for (const depth of depths) {
      const corpus = corpusOf({ seed, chars: size, depthPercent: depth, needles });
      yield {
        corpus,
        id: `${size} characters, depth ${depth} %`,
        group: 'facts',
        question: needleQuestion(corpus.needles),
        wanted: corpus.needles.map(sentenceOf).join(' '),
        grade(answer) {
          const found = gradeNeedles(answer, corpus.needles);
          return { state: stateOf(isExact(found)), counts: { ...found, size, depth } };
        },
      };
    }
    if (!aggregate) continue;
    const corpus = corpusOf({ seed, chars: size, depthPercent: MIDDLE_PERCENT, needles });
    for (const { kind, question, wanted, isRight } of aggregateQuestions(seed, corpus)) {
      yield {
        ...{ corpus, question, wanted, group: 'aggregates' },
        id: `${size} characters, ${kind}`,
        grade: (answer) => ({ state: stateOf(isRight(answer)), counts: { size } }),
      };
    }
  }
}

const stateOf = (isRight: boolean) => (isRight ? 'right' : 'wrong');

async function askModel({ subject }: Trial, asked: Asked, signal: AbortSignal): Promise<Graded> {
  const text = `${asked.corpus.text}\n\n---\n\n${asked.question}`;
  const needed = textTokens(text) + subject.maxTokens;
  if (needed > subject.contextTokens) {
    const got = `about ${needed} tokens do not fit into the context of ${subject.contextTokens}`;
    return { state: 'skipped', got, ms: 0, counts: {} };
  }
  const said = [{ role: 'user' as const, text }];
  const question = { system: HAYSTACK_SYSTEM, said, temperature: TEMPERATURE };
  const reply = await subject.ask(question, signal);
  return { got: reply.text, ms: reply.ms, ...asked.grade(reply.text) };
}

/** Writes it as notes of past days, which are not in the prompt. */
async function askWithNotes(trial: Trial, asked: Asked, signal: AbortSignal): Promise<Graded> {
  const bench = await trial.workbench();
  await bench.clear('memory');
  await bench.write(notesOf(asked.corpus.text));
  const question = `Your memory holds notes about people. ${asked.question} Look it up there.`;
  const made = await bench.turn(`haystack ${asked.id}`, question, signal);
  const { state, counts } = asked.grade(made.got);
  return { ...made, state, counts: { ...made.counts, ...counts } };
}

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
