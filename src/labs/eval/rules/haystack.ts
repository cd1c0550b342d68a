// The haystack benchmark's material, made from a seed: a corpus with facts about people, questions
// about single facts, and questions that need several places of the text.

import {
  choiceSaid,
  isExact,
  listSaid,
  numberSaid,
  plain,
  type Retrieval,
  saysNobody,
  seeded,
  wordsOf,
} from './grade.ts';

type Fact = { readonly name: string; readonly job: string; readonly city: string };

export type Corpus = {
  readonly text: string;
  /** In the order of the text. */
  readonly facts: readonly Fact[];
  /** The facts that the questions are about. */
  readonly needles: readonly Fact[];
};

const FIRST = wordsOf(
  'Ada Bruno Clara Dario Edda Felix Greta Hugo Ines Jonas Kira Leon Mira Nils Olga Pavel Rosa Stefan Tilda Viktor',
);
const LAST = wordsOf(
  'Abbot Brandt Castell Drewes Ekman Farrow Gruber Haldane Ivers Jansen Kessel Lindqvist Marlow Norling Oberlin Petrow Quist Rademaker Sorel Tennant',
);
const JOBS = wordsOf(
  'baker carpenter dentist florist glazier jeweller librarian notary optician plumber tailor welder',
);
export const CITIES = wordsOf(
  'Aarhus Bergamo Coimbra Dundee Eindhoven Freiburg Gdansk Halifax Innsbruck Jena Kaunas Lugano',
);
const FILLER = [
  'The tide tables for the northern coast were printed twice that year.',
  'A wooden bridge needs new planks sooner than anyone expects.',
  'Most of the afternoon went by in a discussion about the colour of the shutters.',
  'Fog settled over the fields and did not lift before noon.',
  'The committee thanked everybody and adjourned without a decision.',
  'An old clock in the hall struck thirteen, as it always did.',
  'Nobody could say when the well had last been cleaned.',
  'Rain is measured in a brass cylinder behind the school.',
  'The market closes early when the wind turns to the east.',
  'Letters that arrive after six are kept until the next morning.',
  'Three kinds of apples grow along the road, and two of them are sour.',
  'The second edition corrects the map but not the index.',
] as const;
const MAX_FACTS = FIRST.length * LAST.length;
/** Density of distractors, so that the form of a sentence does not reveal the needles. */
const CHARS_PER_DISTRACTOR = 2000;

type CorpusWish = {
  readonly seed: number;
  readonly chars: number;
  /** Position of the first needle, in percent; further ones follow evenly to the end. */
  readonly depthPercent: number;
  readonly needles: number;
};

/** The text is longer where its facts need more than `chars` characters. */
export function corpusOf({ seed, chars, depthPercent, needles: count }: CorpusWish): Corpus {
  const draw = seeded(seed, `corpus ${chars} ${depthPercent}`);
  const others = Math.min(MAX_FACTS - count, Math.max(8, Math.floor(chars / CHARS_PER_DISTRACTOR)));
  const [needles, distractors] = peopleOf(seed, count, others, `${chars} ${depthPercent}`);
  const placed = [
    ...distractors.map((fact, at) => ({ fact, at: (at + 0.5) / others })),
    ...needles.map((fact, at) => ({ fact, at: needlePlace(depthPercent / 100, at, count) })),
  ].sort((one, other) => one.at - other.at);
  const sentences: string[] = [];
  let length = 0;
  const add = (sentence: string) => {
    sentences.push(sentence);
    length += sentence.length + 1;
  };
  const factChars = placed.reduce((sum, { fact }) => sum + sentenceOf(fact).length + 1, 0);
  const fillerChars = Math.max(0, chars - factChars);
  let filled = 0;
  for (const { fact, at } of placed) {
    while (filled < at * fillerChars) {
      const sentence = draw.pick(FILLER);
      filled += sentence.length + 1;
      add(sentence);
    }
    add(sentenceOf(fact));
  }
  while (length < chars) add(draw.pick(FILLER));
  return { text: paragraphs(sentences), facts: placed.map(({ fact }) => fact), needles };
}

const needlePlace = (depth: number, at: number, count: number) =>
  count === 1 ? depth : depth + ((1 - depth) * at) / count;

function peopleOf(seed: number, needles: number, others: number, stream: string) {
  const draw = seeded(seed, `people ${stream}`);
  const names = draw.shuffled(FIRST.flatMap((first) => LAST.map((last) => `${first} ${last}`)));
  const facts = names.slice(0, needles + others).map((name) => ({
    name,
    job: draw.pick(JOBS),
    city: draw.pick(CITIES),
  }));
  return [facts.slice(0, needles), facts.slice(needles)] as const;
}

export const sentenceOf = ({ name, job, city }: Fact) => `${name} works as a ${job} in ${city}.`;

const SENTENCES_PER_PARAGRAPH = 8;

function paragraphs(sentences: readonly string[]): string {
  const parts: string[] = [];
  for (let at = 0; at < sentences.length; at += SENTENCES_PER_PARAGRAPH) {
    parts.push(sentences.slice(at, at + SENTENCES_PER_PARAGRAPH).join(' '));
  }
  return parts.join('\n\n');
}

export const HAYSTACK_SYSTEM =
  'You answer questions about a text you are given. Use nothing but the text. Answer shortly; where the text does not say it, say so.';

export function needleQuestion(needles: readonly Fact[]): string {
  const names = needles.map(({ name }) => name).join(', ');
  return needles.length === 1
    ? `What is the job of ${names}, and in which city?`
    : `For each of these people, what is their job, and in which city? One line for each, beginning with the name: ${names}`;
}

/**
 * `named`: persons for whom the answer states a job or a city; `right`: those for whom both are
 * right and nothing else is stated.
 */
export function gradeNeedles(answer: string, needles: readonly Fact[]): Retrieval {
  let right = 0;
  let named = 0;
  for (const fact of needles) {
    const said = needles.length === 1 ? answer : partAbout(answer, fact, needles);
    const job = choiceSaid(said, JOBS);
    const city = choiceSaid(said, CITIES);
    if (job !== undefined || city !== undefined) named += 1;
    if (job === fact.job && city === fact.city) right += 1;
  }
  return { right, named, wanted: needles.length };
}

/** From the name to the next of the other names. */
function partAbout(answer: string, { name }: Fact, needles: readonly Fact[]): string {
  const text = plain(answer);
  const start = text.indexOf(plain(name));
  if (start < 0) return '';
  const next = needles
    .filter((other) => other.name !== name)
    .map((other) => text.indexOf(plain(other.name), start + name.length))
    .filter((at) => at >= 0);
  return text.slice(start, Math.min(text.length, ...next));
}

// Questions that need several places of a text, with their right answers.

type AggregateQuestion = {
  readonly kind: 'count' | 'most common' | 'in a city' | 'same city' | 'first';
  readonly question: string;
  readonly wanted: string;
  isRight(answer: string): boolean;
};

/** Five questions, for a text with at least one person. */
export function aggregateQuestions(
  seed: number,
  { text, facts }: Corpus,
): readonly AggregateQuestion[] {
  const draw = seeded(seed, `aggregate ${text.length}`);
  const [first] = facts;
  if (first === undefined) return [];
  // With a person who is alone in a city, the question for others there would be trivial.
  const [sociable = first, ...more] = facts.filter(({ city, name }) =>
    facts.some((one) => one.city === city && one.name !== name),
  );
  const { name, job, city } = draw.pick([sociable, ...more]);
  const { city: place } = draw.pick([first, ...facts]);
  const names = namesOf(facts);
  const count = facts.filter((fact) => fact.job === job).length;
  const there = namesOf(facts.filter((fact) => fact.city === place));
  const others = facts.filter((fact) => fact.name !== name);
  const beside = namesOf(others.filter((fact) => fact.city === city));
  return [
    {
      kind: 'count',
      question: `How many people in the text work as a ${job}? Answer with the number.`,
      wanted: String(count),
      isRight: (answer) => numberSaid(answer) === count,
    },
    mostCommon(facts),
    {
      kind: 'in a city',
      question: `Who in the text works in ${place}? Answer with the names.`,
      wanted: there.join(', '),
      isRight: (answer) => isExact(listSaid(answer, there, names)),
    },
    {
      kind: 'same city',
      question: `Who works in the same city as ${name}? Answer with the names, without ${name}; if there is nobody, say "nobody".`,
      wanted: beside.join(', ') || 'nobody',
      isRight: (answer) =>
        (beside.length > 0 || saysNobody(answer)) &&
        isExact(listSaid(answer, beside, namesOf(others))),
    },
    {
      kind: 'first',
      question: 'Who is the first person that the text names with their job? Answer with the name.',
      wanted: first.name,
      isRight: (answer) => choiceSaid(answer, names) === first.name,
    },
  ];
}

const namesOf = (facts: readonly Fact[]) => facts.map(({ name }) => name);

/** Of several equally common jobs each one is right, and so are all together. */
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
