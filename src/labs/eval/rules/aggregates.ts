// Questions that cannot be answered from one place of a text, and what a right answer to each is.

import { choiceSaid, isExact, listSaid, numberSaid, saysNobody } from './grade.ts';
import { type Corpus, type Fact, JOBS } from './haystack.ts';
import { seeded } from './seeded.ts';

export type AggregateQuestion = {
  readonly kind: 'count' | 'most common' | 'in a city' | 'same city' | 'first';
  readonly question: string;
  readonly wanted: string;
  isRight(answer: string): boolean;
};

/** Five of them, for a text that names anybody. */
export function aggregateQuestions(
  seed: number,
  { text, facts }: Corpus,
): readonly AggregateQuestion[] {
  const draw = seeded(seed, `aggregate ${text.length}`);
  const [first] = facts;
  if (first === undefined) return [];
  // Whoever works alone in a city makes the question for others there an easy one.
  const [sociable = first, ...more] = facts.filter(({ city, name }) =>
    facts.some((one) => one.city === city && one.name !== name),
  );
  const some = draw.pick([sociable, ...more]);
  const other = draw.pick([first, ...facts]);
  return [
    countOf(some.job, facts),
    mostCommon(facts),
    inCity(other.city, facts),
    sameCity(some, facts),
    firstNamed(first, facts),
  ];
}

const namesOf = (facts: readonly Fact[]) => facts.map(({ name }) => name);

function countOf(job: string, facts: readonly Fact[]): AggregateQuestion {
  const count = facts.filter((fact) => fact.job === job).length;
  return {
    kind: 'count',
    question: `How many people in the text work as a ${job}? Answer with the number.`,
    wanted: String(count),
    isRight: (answer) => numberSaid(answer) === count,
  };
}

/** Of several that are equally common, each is right, and so are all of them. */
function mostCommon(facts: readonly Fact[]): AggregateQuestion {
  const counts = [...Map.groupBy(facts, ({ job }) => job)];
  const most = Math.max(...counts.map(([, { length }]) => length));
  const tops = counts.filter(([, { length }]) => length === most).map(([job]) => job);
  return {
    kind: 'most common',
    question:
      'Which job is the most common in the text? If several are equally common, name one of them.',
    wanted: tops.join(' or '),
    isRight(answer) {
      const { right, named } = listSaid(answer, tops, JOBS);
      const said = choiceSaid(answer, JOBS);
      return (right > 0 && right === named) || tops.some((job) => job === said);
    },
  };
}

function inCity(wantedCity: string, facts: readonly Fact[]): AggregateQuestion {
  const there = namesOf(facts.filter(({ city }) => city === wantedCity));
  return {
    kind: 'in a city',
    question: `Who in the text works in ${wantedCity}? Answer with the names.`,
    wanted: there.join(', '),
    isRight: (answer) => isExact(listSaid(answer, there, namesOf(facts))),
  };
}

function sameCity({ name, city }: Fact, facts: readonly Fact[]): AggregateQuestion {
  const others = facts.filter((fact) => fact.name !== name);
  const there = namesOf(others.filter((fact) => fact.city === city));
  return {
    kind: 'same city',
    question: `Who works in the same city as ${name}? Answer with the names, without ${name}; if there is nobody, say "nobody".`,
    wanted: there.join(', ') || 'nobody',
    isRight(answer) {
      if (there.length === 0 && !saysNobody(answer)) return false;
      return isExact(listSaid(answer, there, namesOf(others)));
    },
  };
}

function firstNamed({ name }: Fact, facts: readonly Fact[]): AggregateQuestion {
  return {
    kind: 'first',
    question: 'Who is the first person that the text names with their job? Answer with the name.',
    wanted: name,
    isRight: (answer) => choiceSaid(answer, namesOf(facts)) === name,
  };
}
