// The sprint benchmark: mixed tasks for the whole agent with its tools in a temporary workspace,
// graded by their outcome; calls and tokens are counted.

import { canonicalJson } from '../../lib/json/json.ts';
import {
  choiceSaid,
  mean,
  medianSeconds,
  numberSaid,
  plain,
  type Seeded,
  seeded,
  wordsOf,
} from './rules/grade.ts';
import { barsOf, known, scoreOf, sumOf } from './rules/result.ts';
import type { Benchmark, Graded, Trial } from './run-eval.ts';

export const SPRINT_TIERS = ['lookup', 'hops', 'count', 'edit', 'list', 'synthesis'] as const;
type SprintTier = (typeof SPRINT_TIERS)[number];

/** A file that the task has to produce: the same JSON value, or the same lines. */
type WantedFile = {
  readonly path: string;
  readonly as: 'json' | 'lines';
  readonly text: string;
};

type SprintTask = {
  readonly tier: SprintTier;
  readonly instruction: string;
  /** By path relative to the workspace. Files other than the wanted one have to stay unchanged. */
  readonly files: Readonly<Record<string, string>>;
  readonly wanted: WantedAnswer | { readonly file: WantedFile };
};

type WantedAnswer = { readonly answer: string; isRight(answer: string): boolean };

type SprintGrade = { readonly isPassed: boolean; readonly why: string };

const NAMES = wordsOf('Ansel Berit Cosmo Dagny Eskil Freya Gerda Halvor Ingrid Jarle Kaja Ludo');
const TOWNS = ['Bremen', 'Cork', 'Deventer', 'Esbjerg', 'Ghent', 'Lund'] as const;
const GOODS = ['lamp', 'chair', 'shelf', 'table', 'vase'] as const;
const STATES = ['open', 'sent', 'returned'] as const;
const PEOPLE = 10;
const ORDERS = 24;

type Person = ReturnType<typeof peopleOf>[number];
type Order = ReturnType<typeof ordersOf>[number];

export function sprintTasks(seed: number, count: number): readonly SprintTask[] {
  return Array.from({ length: count }, (_, index) => {
    const tier = SPRINT_TIERS[index % SPRINT_TIERS.length] ?? 'lookup';
    return { tier, ...MAKERS[tier](seeded(seed, `sprint ${index}`), `task-${index + 1}`) };
  });
}

/** `files`: the files of the task in the workspace afterwards. */
export function gradeSprint(
  task: SprintTask,
  answer: string,
  files: ReadonlyMap<string, string>,
): SprintGrade {
  const { wanted } = task;
  const file = 'file' in wanted ? wanted.file : undefined;
  const changed = Object.entries(task.files).find(
    ([path, text]) => path !== file?.path && files.get(path) !== text,
  );
  if (changed !== undefined) return { isPassed: false, why: `${changed[0]} was changed` };
  if ('answer' in wanted) return { isPassed: wanted.isRight(answer), why: 'the answer' };
  const { path, as, text } = wanted.file;
  const found = files.get(path);
  if (found === undefined) return { isPassed: false, why: `${path} is not there` };
  const isPassed = as === 'json' ? sameJson(found, text) : sameLines(found, text);
  return { isPassed, why: `the content of ${path}` };
}

/** Each task has a folder of its own. */
const MAKERS: Readonly<
  Record<SprintTier, (draw: Seeded, folder: string) => Omit<SprintTask, 'tier'>>
> = {
  lookup(draw, folder) {
    const people = peopleOf(draw);
    const { name, extension } = anyOf(draw, people);
    return {
      instruction: `${eachPerson(folder)} What is the extension of ${name}? Answer with the number.`,
      files: personFiles(folder, people),
      wanted: { answer: String(extension), isRight: (answer) => numberSaid(answer) === extension },
    };
  },
  hops(draw, folder) {
    const people = peopleOf(draw);
    const { name, manager } = anyOf(draw, people);
    const town = people.find((one) => one.name === manager)?.town ?? '';
    return {
      instruction: `${eachPerson(folder)} In which town does the manager of ${name} work? Answer with the town.`,
      files: personFiles(folder, people),
      wanted: { answer: town, isRight: (answer) => choiceSaid(answer, TOWNS) === town },
    };
  },
  count(draw, folder) {
    const orders = ordersOf(draw);
    const state = draw.pick(STATES);
    const sum = totalOf(orders.filter((order) => order.state === state));
    return {
      instruction: `${folder}/orders.csv lists orders. What do the amounts of all orders in the state "${state}" add up to? Answer with the number.`,
      files: { [`${folder}/orders.csv`]: csvOf(orders) },
      wanted: { answer: String(sum), isRight: (answer) => numberSaid(answer) === sum },
    };
  },
  edit(draw, folder) {
    const path = `${folder}/settings.json`;
    const before = {
      name: draw.pick(GOODS),
      port: 4000 + draw.below(900),
      retries: draw.below(9),
      limits: { hourly: 10 + draw.below(90), daily: 200 + draw.below(700) },
    };
    const daily = before.limits.daily + 1 + draw.below(50);
    const after = { ...before, limits: { ...before.limits, daily } };
    return {
      instruction: `Change the daily limit in ${path} to ${daily}. Leave everything else in that file as it is.`,
      files: { [path]: jsonOf(before) },
      wanted: { file: { path, as: 'json', text: jsonOf(after) } },
    };
  },
  list(draw, folder) {
    const people = peopleOf(draw);
    const { town } = anyOf(draw, people);
    const names = people.filter((one) => one.town === town).map(({ name }) => name);
    const path = `${folder}/in-town.txt`;
    return {
      instruction: `${eachPerson(folder)} Write the names of all who work in ${town} to ${path}, one a line, in alphabetical order and nothing else.`,
      files: personFiles(folder, people),
      wanted: { file: { path, as: 'lines', text: `${names.toSorted().join('\n')}\n` } },
    };
  },
  synthesis(draw, folder) {
    const people = peopleOf(draw);
    const orders = ordersOf(
      draw,
      people.map(({ name }) => name),
    );
    const { town } = anyOf(draw, people);
    const there = people.filter((one) => one.town === town).map(({ name }) => name);
    const theirs = orders.filter(({ customer }) => there.includes(customer));
    const path = `${folder}/summary.json`;
    const summary = { town, people: there.length, orders: theirs.length, amount: totalOf(theirs) };
    return {
      instruction: `${folder}/people has a file for each customer, ${folder}/orders.csv their orders. Write ${path}: a JSON object with "town": "${town}", "people": how many customers work there, "orders": how many orders these have, "amount": what the amounts of these add up to.`,
      files: { ...personFiles(folder, people), [`${folder}/orders.csv`]: csvOf(orders) },
      wanted: { file: { path, as: 'json', text: jsonOf(summary) } },
    };
  },
};

function peopleOf(draw: Seeded) {
  const names = draw.shuffled(NAMES).slice(0, PEOPLE);
  return names.map((name, at) => ({
    name,
    town: draw.pick(TOWNS),
    extension: 100 + draw.below(900),
    manager: names[(at + 1 + draw.below(names.length - 1)) % names.length] ?? name,
  }));
}

function anyOf(draw: Seeded, people: readonly Person[]): Person {
  return (
    people[draw.below(people.length)] ?? { name: '', town: TOWNS[0], extension: 0, manager: '' }
  );
}

function ordersOf(draw: Seeded, customers: readonly string[] = NAMES) {
  return Array.from({ length: ORDERS }, (_, at) => ({
    id: `O${1001 + at}`,
    customer: customers[draw.below(customers.length)] ?? '',
    item: draw.pick(GOODS),
    amount: 5 + draw.below(195),
    state: draw.pick(STATES),
  }));
}

const eachPerson = (folder: string) => `In ${folder}/people there is a file for each person.`;

const personFiles = (folder: string, people: readonly Person[]) =>
  Object.fromEntries(
    people.map(({ name, town, extension, manager }) => [
      `${folder}/people/${name.toLowerCase()}.md`,
      `# ${name}\n\n- town: ${town}\n- extension: ${extension}\n- manager: ${manager}\n`,
    ]),
  );

const csvOf = (orders: readonly Order[]) =>
  ['id,customer,item,amount,state', ...orders.map((order) => Object.values(order).join(','))]
    .join('\n')
    .concat('\n');

const totalOf = (orders: readonly Order[]) => orders.reduce((sum, { amount }) => sum + amount, 0);
const jsonOf = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

const sameJson = (found: string, wanted: string) => canonicalJson(found) === canonicalJson(wanted);

function sameLines(found: string, wanted: string): boolean {
  const linesOf = (text: string) =>
    text
      .split(/\r?\n/)
      .map(plain)
      .filter((line) => line !== '');
  return linesOf(found).join('\n') === linesOf(wanted).join('\n');
}

// Mixed tasks for the whole agent with its tools, in a workspace of their own: the outcome is
// graded, and calls and tokens are counted.

export type SprintOptions = { readonly seed: number; readonly tasks: number };

export function sprint({ seed, tasks: planned }: SprintOptions): Benchmark {
  const tasks = sprintTasks(seed, planned);
  return {
    benchmark: 'sprint',
    variant: 'tools',
    seed,
    options: { tasks: planned },
    planned,
    *tasks() {
      for (const [index, task] of tasks.entries()) {
        const { tier, wanted } = task;
        yield {
          id: `${index + 1} ${tier}`,
          group: tier,
          wanted:
            'answer' in wanted ? wanted.answer : `${wanted.file.path}: ${wanted.file.text.trim()}`,
          run: (trial, signal) => runTask(trial, task, `task-${index + 1}`, signal),
        };
      }
    },
    summary(items) {
      const answered = items.filter(({ state }) => state !== 'error');
      const rates = Map.groupBy(items, ({ group }) => group);
      const tiers = [...rates].map(
        ([tier, some]) => [`right: ${tier}`, scoreOf(some).rate] as const,
      );
      const each = (name: string) => mean(answered.map(({ counts }) => counts[name] ?? 0));
      return {
        figures: known({
          ...Object.fromEntries(tiers),
          'median seconds a task': medianSeconds(answered.map(({ ms }) => ms)),
          'tokens a task': each('tokens'),
          'model calls a task': each('model calls'),
          'tool calls a task': each('tool calls'),
          'failed tool calls': sumOf(answered, 'failed tool calls'),
        }),
        plots: barsOf('right by tier', items),
      };
    },
  };
}

async function runTask(
  trial: Trial,
  task: SprintTask,
  folder: string,
  signal: AbortSignal,
): Promise<Graded> {
  const bench = await trial.workbench();
  await bench.write(task.files);
  const made = await bench.turn(folder, task.instruction, signal);
  const { isPassed, why } = gradeSprint(task, made.got, await bench.read(folder));
  return { ...made, state: isPassed ? 'right' : 'wrong', got: `${why}: ${made.got}` };
}
