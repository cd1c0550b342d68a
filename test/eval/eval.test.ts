// `nanobot eval` from the command line to the result on the disk, against models that know everything,
// nothing, that talk a lot, and that fail.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bestMove, moveText, PEGS, type Towers } from '../../src/labs/eval/hanoi.ts';
import { LEARN_FAMILIES, type LearnFamily, learnTasks } from '../../src/labs/eval/learn.ts';
import { seeded } from '../../src/labs/eval/rules/grade.ts';
import {
  aggregateQuestions,
  corpusOf,
  needleQuestion,
  sentenceOf,
} from '../../src/labs/eval/rules/haystack.ts';
import { sprintTasks } from '../../src/labs/eval/sprint.ts';
import {
  callTools,
  fail,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';
import { createEvalRig, type EvalRig } from './eval-rig.ts';

const SEED = 7;
let rig: EvalRig;

beforeAll(async () => {
  rig = await createEvalRig();
});
afterAll(() => rig[Symbol.asyncDispose]());
beforeEach(() => rig.server.respond(() => say('I do not know.')));

function towersIn(text: string): Towers {
  const on = (peg: number) => {
    const [, disks = ''] = new RegExp(`peg ${peg}, from the bottom up: (.*)`).exec(text) ?? [];
    return disks === 'empty' ? [] : disks.split(', ').map(Number);
  };
  return { 1: on(1), 2: on(2), 3: on(3) };
}

const best = (text: string) => {
  const move = bestMove(towersIn(text));
  return move === undefined ? '' : moveText(move);
};

function guess(draw = seeded(1, 'guess')) {
  return ({ lastUserText }: LlmRequest) => {
    const from = draw.pick(PEGS);
    const others = PEGS.filter((peg) => peg !== from);
    const to = others[draw.below(others.length)] ?? from;
    const disk = towersIn(lastUserText)[from].at(-1) ?? 1;
    return say(moveText({ disk, from, to }));
  };
}

describe('hanoi', () => {
  const calibrate = ['hanoi', '--disks', '5', '--samples', '62', '--seed', `${SEED}`];

  it('gives a perfect model 100 %, one that picks blindly about what guessing gives', async () => {
    rig.server.respond(({ lastUserText }) => say(best(lastUserText)));
    const perfect = (await rig.measure(...calibrate)).result;
    expect(perfect.score).toMatchObject({ right: 62, total: 62, rate: 1, errors: 0 });
    expect(perfect.figures).toMatchObject({
      'optimal steps': 31,
      'red-flag rate': 0,
      'voters for 99.9 % of a step (majority)': 1,
    });
    expect(perfect.cost.calls).toBe(62);

    rig.server.respond(guess());
    const { score } = (await rig.measure(...calibrate)).result;
    expect(score.chance).toBeCloseTo(1 / 6);
    expect([score.low, score.high].map((bound) => bound < 1 / 6)).toEqual([true, false]);
  });

  it('understands sentences, and counts a service that fails apart from wrong answers', async () => {
    let calls = 0;
    rig.server.respond(({ lastUserText }) => {
      calls += 1;
      if (calls % 3 === 0) return fail(500);
      return say(`Disk 1 is the smallest. The next move is to **${best(lastUserText)}**.`);
    });
    const { code, result, stderr } = await rig.measure('hanoi', '--samples', '18');
    expect(code).toBe(0);
    expect(result.score).toMatchObject({ right: 12, total: 12, rate: 1, errors: 6 });
    expect(stderr).toContain('hanoi (calibrate) with openai/sim');
    const lines = (await readFile(rig.home.metrics, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).role)).toContain('eval');
    expect((await rig.cli('usage')).stdout).toContain('`Evaluation hanoi` (chat eval:hanoi)');
  });

  it('solves by votes: a model that errs often makes no step wrong, and a tie is a tie', async () => {
    let calls = 0;
    rig.server.respond(({ lastUserText }) => {
      calls += 1;
      if (calls % 4 === 0) return say('move disk 9 from peg 1 to peg 2');
      return calls % 7 === 0 ? say('hm') : say(best(lastUserText));
    });
    const solve = ['hanoi', '--solve', '--disks', '4', '-k', '2'];
    const { result } = await rig.measure(...solve);
    expect(result.score).toMatchObject({ right: 15, total: 15 });
    expect(result.figures).toMatchObject({ 'steps without error before the first': 15 });
    expect(result.figures['error-free rate of single votes']).toBeLessThan(0.85);
    expect(result.figures['red flags']).toBeGreaterThan(0);

    rig.server.respond(({ lastUserText }) => {
      calls += 1;
      return say(calls % 2 === 0 ? 'move disk 9 from peg 1 to peg 2' : best(lastUserText));
    });
    const tied = (await rig.measure(...solve, '--max-votes', '4')).result;
    expect(tied.score).toMatchObject({ right: 0, total: 15 });
    expect(tied.figures['undecided steps']).toBe(15);
    expect(tied.items[0]?.got).toContain('a tie: ');

    rig.server.respond(({ lastUserText }) => say(best(lastUserText)));
    const gated = (await rig.measure('hanoi', '--solve', '--disks', '3', '-k', '3', '--gate'))
      .result;
    expect(gated.figures).toMatchObject({
      ...{ 'votes a step': 2, 'steps accepted by the pilot voters': 7 },
    });
  });
});

describe('haystack', () => {
  const SIZES = [3000, 12_000];
  const DEPTHS = [0, 100];
  const args = [
    'haystack',
    '--seed',
    `${SEED}`,
    '--sizes',
    '3000,12000',
    '--depths',
    '0 100',
    '--needles',
    '2',
  ];

  function known(): ReadonlyMap<string, string> {
    const pairs = SIZES.flatMap((chars) => {
      const cells = DEPTHS.map((depthPercent) => {
        const { needles } = corpusOf({ seed: SEED, chars, depthPercent, needles: 2 });
        return [needleQuestion(needles), needles.map(sentenceOf).join('\n')] as const;
      });
      const corpus = corpusOf({ seed: SEED, chars, depthPercent: 50, needles: 2 });
      const questions = aggregateQuestions(SEED, corpus);
      return [
        ...cells,
        ...questions.map(({ question, wanted }) => [`${chars} ${question}`, wanted] as const),
      ];
    });
    return new Map(pairs);
  }

  it('gives the model the text itself: whoever knows it has all, whoever guesses next to nothing', async () => {
    const answers = known();
    const seen: number[] = [];
    rig.server.respond(({ lastUserText }) => {
      seen.push(lastUserText.length);
      const question = lastUserText.split('\n\n---\n\n').at(-1) ?? '';
      const size = lastUserText.length < 8000 ? 3000 : 12_000;
      return say(answers.get(question) ?? answers.get(`${size} ${question}`) ?? '');
    });
    const { result } = await rig.measure(...args);
    expect(result.items.filter(({ state }) => state !== 'right')).toEqual([]);
    expect(result.figures).toMatchObject({
      precision: 1,
      recall: 1,
      'aggregate questions right': 1,
    });
    expect(Math.max(...seen)).toBeGreaterThan(12_000);

    const draw = seeded(3);
    rig.server.respond(() => say(`baker, Jena; there are ${draw.below(40)}`));
    const random = (await rig.measure(...args)).result;
    expect(random.score.rate).toBeLessThan(0.2);
    expect(random.figures['recall']).toBeLessThan(0.2);
  });

  it('leaves out what does not fit the model, and says so', async () => {
    const { result } = await rig.measure(
      'haystack',
      '--sizes',
      '900000',
      '--depths',
      '50',
      '--no-aggregate',
    );
    expect(result.score).toMatchObject({ total: 0, skipped: 1 });
    expect(result.items[0]?.got).toMatch(/do not fit into/);
  });

  it('lets the agent find it with the tools of its memory', async () => {
    const { needles } = corpusOf({ seed: SEED, chars: 6000, depthPercent: 50, needles: 1 });
    const [needle] = needles;
    rig.server.respond(({ toolResults, tools }) => {
      if (toolResults.length === 0) {
        expect(tools).toContain('recall');
        return callTools({ name: 'recall', arguments: { query: needle?.name ?? '' } });
      }
      const [, found] = /(\w+ \w+ works as a \w+ in \w+\.)/.exec(toolResults[0]?.text ?? '') ?? [];
      const text = toolResults[0]?.text ?? '';
      const at = needle === undefined ? -1 : text.indexOf(`${needle.name} works as`);
      return say(at < 0 ? `not found ${found}` : (text.slice(at, at + 60).split('.')[0] ?? ''));
    });
    const { result } = await rig.measure(
      ...['haystack', '--seed', `${SEED}`, '--through', 'memory', '--sizes', '6000'],
      ...['--depths', '50', '--no-aggregate'],
    );
    expect(result.items.map(({ state, got }) => [state, got])).toEqual([
      ['right', expect.any(String)],
    ]);
    expect(result.figures['model calls a question']).toBe(2);
  });
});

describe('learn', () => {
  const wish = (family: LearnFamily) => ({ family, seed: SEED, tasks: 20, depth: 2 });
  const args = (family: LearnFamily) => [
    ...['learn', '--family', family, '--seed', `${SEED}`, '--tasks', '20', '--depth', '2'],
  ];

  it.each(LEARN_FAMILIES)('%s: whoever knows the rules is right at once', async (family) => {
    const tasks = learnTasks(wish(family));
    rig.server.respond((request) => {
      const asked = JSON.stringify(request.body['messages']);
      const task = tasks.findLast(({ question }) =>
        asked.includes(JSON.stringify(question).slice(1, -1)),
      );
      const [start = ''] = Object.keys(task?.files ?? {});
      if (start !== '' && request.toolResults.length === 0) {
        return callTools({ name: 'read_file', arguments: { path: start } });
      }
      return say(`I think it is ${task?.wanted}.`);
    });
    const { score, figures } = (await rig.measure(...args(family))).result;
    expect(score).toMatchObject({ right: 20, total: 20 });
    expect(figures).toMatchObject({ 'forward transfer': 1, 'surprise rate': 0 });
    expect(figures['iterations a task']).toBe(family === 'tool-chain' ? 2 : 1);
  });

  it('shows who uses what they were told, and how many tries it took', async () => {
    rig.server.respond(({ body, lastUserText }) => {
      const house = /house (\w+) have/.exec(lastUserText)?.[1] ?? '';
      const told = new RegExp(`House ${house} is (\\w+)`).exec(JSON.stringify(body['messages']));
      return say(told?.[1] ?? 'plaid');
    });
    const { score, figures } = (await rig.measure(...args('fact-retrieval'))).result;
    const houses = new Set(
      learnTasks(wish('fact-retrieval')).map(
        ({ wanted, question }) => wanted + question.split(':')[0],
      ),
    );
    expect(score.right).toBe(20 - houses.size);
    expect(figures['solved in the end']).toBe(1);
    expect(figures['forward transfer']).toBeGreaterThan(1);
    expect(figures['iterations a task']).toBeCloseTo((20 + houses.size) / 20);

    const draw = seeded(2);
    rig.server.respond(() => say(String(draw.below(10))));
    const random = (await rig.measure(...args('arithmetic'), '--tries', '1')).result.score;
    expect(random.chance).toBe(0.1);
    expect([random.low < 0.1, random.high > 0.1]).toEqual([true, true]);
  });
});

describe('sprint', () => {
  const args = ['sprint', '--tasks', '6', '--seed', `${SEED}`];

  function perfect(request: LlmRequest): LlmReply {
    const asked = JSON.stringify(request.body['messages']);
    const task = sprintTasks(SEED, 6).find(({ instruction }) =>
      asked.includes(JSON.stringify(instruction).slice(1, -1)),
    );
    if (task === undefined) return say('?');
    const { wanted } = task;
    if (request.toolResults.length > 0)
      return say('answer' in wanted ? `It is ${wanted.answer}.` : 'It is done.');
    if ('file' in wanted) {
      const { path, text } = wanted.file;
      const read = { name: 'read_file', arguments: { path: Object.keys(task.files)[0] ?? '' } };
      return callTools(read, { name: 'write_file', arguments: { path, content: text } });
    }
    return callTools({ name: 'read_file', arguments: { path: Object.keys(task.files)[0] ?? '' } });
  }

  it('runs the whole agent over real tools and grades what came of it', async () => {
    rig.server.respond(perfect);
    const { result } = await rig.measure(...args);
    expect(result.items.filter(({ state }) => state !== 'right')).toEqual([]);
    expect(result.figures).toMatchObject({
      'right: edit': 1,
      'model calls a task': 2,
      'failed tool calls': 0,
    });
    expect(result.figures['tokens a task']).toBeGreaterThan(0);

    rig.server.respond(() => say('Done, it is 17 in Cork.'));
    expect((await rig.measure(...args)).result.score.rate).toBeLessThan(0.34);
  });
});

it('puts models of several servers side by side in one report', async () => {
  await using perfect = await startLlmServer({
    respond: ({ lastUserText }) => say(best(lastUserText)),
    record: false,
  });
  await using random = await startLlmServer({ respond: guess(), record: false });
  const at = ({ openaiBase }: LlmServer) => ({ apiBase: openaiBase, apiKey: 'k' });
  await using several = await createEvalRig({
    providers: { openai: at(perfect), groq: at(random) },
  });
  const hanoi = ['hanoi', '--samples', '31', '--seed', `${SEED}`];
  for (const model of ['openai/sim', 'groq/sim']) await several.measure(...hanoi, '--model', model);
  const { stdout } = await several.cli('eval', 'report');
  expect(stdout.match(/^hanoi calibrate/gm)).toHaveLength(1);
  const shares = [...stdout.matchAll(/^ {2}(openai|groq)\/sim .*? (\d+\.\d) %/gm)];
  const byVendor = new Map(shares.map(([, vendor, share]) => [vendor, Number(share)]));
  expect(byVendor.get('openai')).toBe(100);
  expect(byVendor.get('groq')).toBeLessThan(40);
});

describe('an evaluation that is cut off', () => {
  it('by Ctrl+C, by the money or by a service that is gone leaves a result that says so', async () => {
    let calls = 0;
    rig.server.respond(({ lastUserText }) => {
      calls += 1;
      if (calls === 3) process.emit('SIGINT');
      return say(best(lastUserText));
    });
    const stopped = await rig.measure('hanoi', '--samples', '50');
    expect(stopped.code).toBe(130);
    expect(stopped.result).toMatchObject({
      status: 'partial',
      because: 'stopped',
      planned: 50,
    });
    expect(stopped.result.items.length).toBeLessThan(4);

    const dear = await rig.measure('hanoi', '--samples', '5', '--max-cost', '0.01');
    expect(dear.code).toBe(1);
    expect(dear.result.because).toMatch(/the price of \S+ is unknown/);

    const price = { model: 'openai/sim', input: 10, output: 20, cached: 1 };
    await using paid = await createEvalRig({ models: { prices: [price] } });
    paid.server.respond(() => ({ ...say('?'), usage: { input: 1000, output: 10 } }));
    const spent = (await paid.measure('hanoi', '--samples', '50', '--max-cost', '0.1')).result;
    expect(spent.because).toMatch(/could exceed the limit of 0\.1 USD/);
    expect(spent.cost.money).toBeGreaterThan(0.05);
    expect(spent.cost.money).toBeLessThan(0.1);

    for (const name of ['sprint', 'haystack'] as const) {
      rig.server.respond(() => {
        process.emit('SIGINT');
        return say('?');
      });
      const { figures } = (await rig.measure(name)).result;
      expect(Object.keys(figures).filter((figure) => figure.includes('seconds'))).toEqual([]);
    }

    rig.server.respond(() => fail(500));
    const gone = await rig.measure('hanoi', '--samples', '50');
    expect(gone.result.score).toMatchObject({ total: 0, errors: 5 });
    expect(gone.result.because).toMatch(/5 errors in a row/);

    const page = join(rig.home.root, 'report.html');
    const report = await rig.cli('eval', 'report');
    expect(report.stdout).toMatch(/hanoi calibrate \(disks: 5, moves asked for: \d+, seed/);
    expect(report.stdout).toContain('PARTIAL');
    expect((await rig.cli('eval', 'report', '--html', page)).code).toBe(0);
    const html = await readFile(page, 'utf8');
    expect(html).toContain('<svg');
    expect(html).not.toMatch(/<script|src=|href=/);
  });
});
