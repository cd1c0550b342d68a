// Measures the drift of an answer: how little it is worth showing again to the model that wrote it.
// Only prose is measured: code, tables, lists, quotes, data and numbers are neither filler nor
// repetition.

import { ownWords } from '../../../agent/rules/context-pack.ts';
import { loopIn } from '../../../agent/rules/guard.ts';
import { firstSeqOf } from '../../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  Drift,
  DriftSignal,
  TranscriptEntry,
} from '../../../kernel/message/transcript.ts';
import { revealAll } from '../../../lib/html/hidden-text.ts';
import { onFirstUse } from '../../../lib/json/json.ts';
import type { AntiDriftConfig, ProprioceptionConfig } from '../settings.ts';

/** An answer analysed for comparison with others. */
type ReadAnswer = {
  readonly text: string;
  /** The person's message before it. */
  readonly asked: string;
  readonly hasCalls: boolean;
  /** Number of words of its prose. */
  readonly words: number;
  readonly trigrams: ReadonlySet<string>;
  /** Number of trigrams, including repeated ones. */
  readonly trigramsSaid: number;
  readonly filler: number;
  /**
   * Everything that is not prose, and every number: two answers with similar words differ by these.
   */
  readonly facts: string;
  readonly hasFigures: boolean;
  /** Words that may be names, in their order. */
  readonly names: string;
};

type DriftLimits = Pick<AntiDriftConfig, 'babbleWords' | 'loopRepeats'>;

const TENTHS: Readonly<Record<DriftSignal, number>> = {
  filler_heavy: 3,
  repetitive: 3,
  babble: 2,
  hallucinated_output: 2,
  already_condensed: 4,
  loop: 6,
};

const MIN_WORDS = 20;
/** Lines other than prose from which an answer counts as having figures. */
const MIN_FIGURES = 3;
const MIN_TRIGRAMS = 8;
const FILLER_HEAVY = 0.3;
const SIMILAR = 0.4;
const NEARLY_THE_SAME = 0.8;
/** Least share of unrepeated trigrams of a long text; good prose has above 0.9. */
const LITTLE_NEW = 0.5;
const BABBLE_FILLER = 0.2;

const CONDENSED = /\[response condensed\]\s*$/;
/** Fabricated tool output, as a line of its own. */
const FAKED =
  /^(?:\[(?:I called|tool (?:result|output)|function (?:result|output)|result of)\b[^\]\n]*\]|<tool_(?:response|result|output)>)/im;

/** `earlier`: the preceding answers, oldest first; the last three count. */
export function driftOf(
  answer: ReadAnswer,
  earlier: readonly ReadAnswer[],
  limits: DriftLimits,
): Drift {
  const { text, asked, words, filler, hasCalls, hasFigures, trigrams, trigramsSaid } = answer;
  const isLong = words > limits.babbleWords && !hasCalls && !hasFigures;
  const saysLittle = trigrams.size < trigramsSaid * LITTLE_NEW || filler > BABBLE_FILLER;
  const isFound: Readonly<Record<DriftSignal, boolean>> = {
    filler_heavy: words >= MIN_WORDS && filler > FILLER_HEAVY,
    repetitive: earlier.slice(-3).some((other) => isLike(answer, other, SIMILAR)),
    babble: isLong && saysLittle,
    hallucinated_output: !hasCalls && FAKED.test(withoutCode(text)),
    already_condensed: CONDENSED.test(text),
    loop: limits.loopRepeats > 0 && loopIn(text, limits.loopRepeats, asked) !== undefined,
  };
  const signals = SIGNALS.filter((signal) => isFound[signal]);
  const tenths = signals.reduce((sum, signal) => sum + TENTHS[signal], 0);
  return { score: Math.min(10, tenths) / 10, signals };
}

/** For an answer that was aborted because it repeated itself. */
export const LOOPING: Drift = { score: TENTHS.loop / 10, signals: ['loop'] };

const SIGNALS = Object.keys(TENTHS) as readonly DriftSignal[];

/** Whether both say the same in nearly the same words; with other names they say something else. */
const isNearlyTheSame = (one: ReadAnswer, other: ReadAnswer) =>
  one.names === other.names && isLike(one, other, NEARLY_THE_SAME);

function isLike(one: ReadAnswer, other: ReadAnswer, above: number): boolean {
  if (Math.min(one.trigrams.size, other.trigrams.size) < MIN_TRIGRAMS) return false;
  if (one.facts !== other.facts) return false;
  const shared = [...one.trigrams].filter((trigram) => other.trigrams.has(trigram)).length;
  return shared / (one.trigrams.size + other.trigrams.size - shared) > above;
}

export function readAnswer(text: string, hasCalls: boolean, asked = ''): ReadAnswer {
  const prose = proseOf(text);
  const spoken = prose.text.toLowerCase();
  const said = spoken.match(/\p{L}[\p{L}'’-]*/gu) ?? [];
  const trigrams = said.slice(2).map((word, index) => `${said[index]} ${said[index + 1]} ${word}`);
  return {
    text,
    asked,
    hasCalls,
    words: said.length,
    trigrams: new Set(trigrams),
    trigramsSaid: trigrams.length,
    filler: fillerShare(spoken, said.length),
    facts: [...prose.others, ...(prose.text.match(/\p{N}+/gu) ?? [])].join('\n'),
    hasFigures: prose.others.length >= MIN_FIGURES || FENCE.test(text),
    names: namesIn(prose.text).join('\n'),
  };
}

const FENCED = /^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|(?![\s\S]))/gm;
/** Words with a capital within a sentence, and every word of a script without case. */
const namesIn = (text: string) =>
  text.match(
    /(?<=[\p{L}\p{M}\p{N},:’'–-]\s)\p{Lu}(?!['’])[\p{L}\p{M}'’-]+|\p{Lo}[\p{Lo}\p{M}]+/gu,
  ) ?? [];
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/m;
const SPAN = /`[^`\n]+`|https?:\/\/[^\s)>\]]+/g;
/** Tables, lists, headings, quotes, indented code, data. */
const NO_PROSE_LINE =
  /^(?: {4}|\t|\s*(?:[|>#+*•·–-]|\d+[.):]|\p{L}[.)]\s|[[{}\]"<]))|\|.*\||^[^\p{L}]*$|[;{}]\s*$|^\s*[\w.-]+\s*[=:]\s*\S+$/u;

const withoutCode = (text: string) => text.replace(FENCED, '');

function proseOf(text: string): { readonly text: string; readonly others: readonly string[] } {
  const others: string[] = [];
  const keep = (found: string) => {
    others.push(found);
    return '\n';
  };
  const lines = text.replace(FENCED, keep).replace(SPAN, keep).split('\n');
  const prose = lines.filter((line) => {
    const isProse = !NO_PROSE_LINE.test(line);
    if (!isProse && line.trim() !== '') others.push(line);
    return isProse;
  });
  return { text: prose.join('\n'), others };
}

// Filler words by language, and language detection. A language that is not in the list has no
// filler, so that no text is measured with the words of another language.

type Language = {
  /** Words that nearly every sentence of the language contains and that no other language has. */
  readonly common: ReadonlySet<string>;
  readonly filler: () => RegExp;
};

const words = (text: string) => new Set(text.split(' '));
/** Longer phrases first, so that all of their words count. */
const phrases = (text: string) =>
  onFirstUse(() => {
    const each = text.split('|').sort((one, other) => other.length - one.length);
    return new RegExp(`(?<![\\p{L}\\p{N}])(?:${each.join('|')})(?![\\p{L}\\p{N}])`, 'gu');
  });

const LANGUAGES: readonly Language[] = [
  {
    common: words('the and is of to that this with for you are have it be your'),
    filler: phrases(
      'well|okay|ok|so|basically|actually|really|just|very|quite|simply|literally|honestly|certainly|sure|' +
        'absolutely|definitely|obviously|of course|you know|i mean|i think|i guess|kind of|sort of|let me|' +
        "i will now|i'll now|i am going to|i'm going to|as i said|like i said|as mentioned|in other words|" +
        'great question|good question|happy to help|let us see|now then|anyway|alright|right',
    ),
  },
  {
    common: words('der die das und ist nicht ein eine mit für auf den von sie ich zu'),
    filler: phrases(
      'also|nun|ja|naja|halt|eben|einfach|eigentlich|quasi|sozusagen|wirklich|natürlich|selbstverständlich|' +
        'gerne|irgendwie|grundsätzlich|tatsächlich|sehr|ganz|mal|doch|okay|gut|genau|wie gesagt|ich denke|' +
        'ich meine|ich glaube|ich werde nun|ich werde jetzt|lass mich|mit anderen worten|gute frage',
    ),
  },
  {
    common: words('le les des est une et dans pour que pas vous avec sur ce du'),
    filler: phrases(
      'alors|donc|bon|bah|ben|enfin|voilà|vraiment|simplement|évidemment|bien sûr|certainement|absolument|' +
        "en fait|du coup|en gros|genre|quoi|très|tout à fait|je pense|je crois|je veux dire|d'accord|" +
        'laissez-moi|je vais maintenant|comme je disais|autrement dit|bonne question',
    ),
  },
  {
    common: words('el los las es una que para con por del y está como se al'),
    filler: phrases(
      'bueno|pues|entonces|o sea|básicamente|realmente|simplemente|claro|por supuesto|ciertamente|obviamente|' +
        'en realidad|de hecho|digamos|muy|vale|creo que|pienso que|quiero decir|déjame|déjeme|voy a|' +
        'como dije|como decía|en otras palabras|buena pregunta|absolutamente',
    ),
  },
  {
    common: words('il che di è una per con non sono gli della nel anche questo alla'),
    filler: phrases(
      'allora|dunque|quindi|beh|ecco|cioè|praticamente|veramente|davvero|semplicemente|certo|certamente|' +
        'ovviamente|naturalmente|in realtà|insomma|diciamo|molto|va bene|penso che|credo che|voglio dire|' +
        'fammi|lasciami|come dicevo|in altre parole|bella domanda|assolutamente',
    ),
  },
  {
    common: words('o os uma não para com por que do da em você é no na'),
    filler: phrases(
      'bem|bom|então|tipo|pois|basicamente|realmente|simplesmente|claro|com certeza|certamente|obviamente|' +
        'na verdade|de fato|digamos|muito|tá|certo|acho que|penso que|quero dizer|deixe-me|deixa eu|vou agora|' +
        'como eu disse|ou seja|em outras palavras|boa pergunta|absolutamente',
    ),
  },
];

/** Least share of common words in a text of the language. */
const LEAST_COMMON_SHARE = 0.08;
/** Many texts contain a word or two of another language. */
const LEAST_COMMON_WORDS = 3;

/** The share of filler, 0 to 1. `prose`: in lower case. */
function fillerShare(prose: string, count: number): number {
  const language = languageOf(prose.match(/\p{L}+/gu) ?? []);
  if (language === undefined || count === 0) return 0;
  const found = prose.match(language.filler()) ?? [];
  return found.reduce((sum, phrase) => sum + phrase.split(/[\s'’]+/).length, 0) / count;
}

/** Undefined where no language of the list clearly leads. */
function languageOf(all: readonly string[]): Language | undefined {
  const counts = LANGUAGES.map(({ common }) => all.filter((word) => common.has(word)).length);
  const most = Math.max(...counts);
  const language = LANGUAGES[counts.indexOf(most)];
  const isClear = counts.filter((count) => count === most).length === 1;
  if (language === undefined || !isClear || most < all.length * LEAST_COMMON_SHARE)
    return undefined;
  const found = new Set(all.filter((word) => language.common.has(word)));
  return found.size >= LEAST_COMMON_WORDS ? language : undefined;
}

// The earlier answers as a small model sees them, so that it does not continue a drift: answers of
// no value become one line, near repetitions refer to the first. The newest four and everything
// that others wrote are unchanged, and so is the record.

type SteadyPolicy = Omit<AntiDriftConfig, 'enabled' | 'anchorInterval'>;

const NEWEST = 4;
/** Number of answers that others are compared with. */
const MAX_FIRSTS = 20;
const PLACEHOLDER = /^\[An answer of yours (?:was left out here: |for the )[^\n]{1,200}\]$/;
const HIDDEN = /<\/?(?:think|thought|reason)/i;

/** `canReadBack`: the tool read_earlier is available. */
export function steadied(
  entries: readonly TranscriptEntry[],
  policy: SteadyPolicy,
  canReadBack: boolean,
): readonly TranscriptEntry[] {
  const answers = entries.filter((entry) => entry.role === 'assistant');
  const old = answers.slice(0, Math.max(0, answers.length - NEWEST));
  const said = Map.groupBy(entries, (entry) => (entry.role === 'user' ? entry.turnId : undefined));
  const read = answers.map(({ text, toolCalls, turnId }) =>
    readAnswer(text, toolCalls.length > 0, ownWords(said.get(turnId) ?? [])),
  );
  const polluted = old.map(
    ({ text }, nth) => !isPlaceholder(text) && isPolluted(read, nth, policy),
  );
  const again = repeatsAmong(
    read.map((each, nth) => (polluted[nth] === true ? undefined : each)),
    policy.repetitionMinCount,
  );
  const instead = new Map<TranscriptEntry, AssistantEntry>();
  for (const [nth, entry] of answers.entries()) {
    const text =
      nth < old.length ? insteadOf(entry, polluted[nth] === true, again[nth]) : undefined;
    const shown = text === undefined ? revealed(entry) : without(entry, text, canReadBack);
    if (shown !== entry) instead.set(entry, shown);
  }
  return instead.size === 0 ? entries : entries.map((entry) => instead.get(entry) ?? entry);
}

const isPlaceholder = (text: string) => PLACEHOLDER.test(text);

function isPolluted(read: readonly ReadAnswer[], nth: number, policy: SteadyPolicy): boolean {
  const answer = read[nth];
  if (answer === undefined) return false;
  return driftOf(answer, read.slice(0, nth), policy).score >= policy.pollutionThreshold;
}

/**
 * For each answer that repeats an earlier one at least `least` times: the ordinal of the
 * repetition.
 */
function repeatsAmong(
  read: readonly (ReadAnswer | undefined)[],
  least: number,
): readonly (number | undefined)[] {
  const firsts: { readonly answer: ReadAnswer; readonly times: number[] }[] = [];
  for (const [nth, answer] of read.entries()) {
    if (answer === undefined || isPlaceholder(answer.text)) continue;
    const group = firsts.find((first) => isNearlyTheSame(first.answer, answer));
    if (group !== undefined) group.times.push(nth);
    else firsts.push({ answer, times: [nth] });
    if (firsts.length > MAX_FIRSTS) firsts.shift();
  }
  return read.map((_, nth) => {
    const times = firsts.find((first) => first.times.includes(nth))?.times ?? [];
    const at = times.indexOf(nth);
    return times.length >= least && at > 0 ? at + 1 : undefined;
  });
}

function insteadOf({ text }: AssistantEntry, isJunk: boolean, time: number | undefined) {
  if (isPlaceholder(text)) return undefined;
  if (isJunk) return 'is omitted: it said little or repeated itself';
  return time === undefined ? undefined : `for the ${ordinal(time)} time said the same as above`;
}

function ordinal(n: number): string {
  const ending = n === 2 ? 'nd' : n === 3 ? 'rd' : 'th';
  return `${n}${ending}`;
}

function without(entry: AssistantEntry, what: string, canReadBack: boolean): AssistantEntry {
  const turn = firstSeqOf(entry.turnId);
  const back =
    canReadBack && turn !== undefined ? `; read_earlier with from: ${turn} shows it` : '';
  const text = `[An answer of yours ${what}${back}]`;
  return text.length < entry.text.length ? { ...entry, text, thinking: [] } : entry;
}

/** Thinking that leaked into the text is no example to follow. */
function revealed(entry: AssistantEntry): AssistantEntry {
  if (!HIDDEN.test(entry.text)) return entry;
  const text = revealAll(entry.text);
  return text === entry.text ? entry : { ...entry, text };
}

// The lines of /status about steadiness; empty where it is switched off.

export function steadinessLines({
  antiDrift,
  proprioception,
}: {
  readonly antiDrift: AntiDriftConfig;
  readonly proprioception: ProprioceptionConfig;
}): readonly string[] {
  const { enabled, pollutionThreshold } = antiDrift;
  const which = enabled === 'on' ? 'all' : 'small and medium';
  const { groundingInterval, rawWindow, lightWindow } = proprioception;
  const senses = [
    groundingInterval > 0 && `a note every ${groundingInterval} rounds`,
    proprioception.dynamicToolScoping && 'tools of local models by phase',
    proprioception.gradientMemory && `turns whole ${rawWindow}, light to ${lightWindow}`,
    proprioception.audienceAwareCompaction && 'summaries for their reader',
    proprioception.ahaChannel && 'critical reports of subagents',
  ].filter((sense) => sense !== false);
  const isSensing = proprioception.enabled && senses.length > 0;
  return [
    ...(enabled === 'off'
      ? []
      : [`Anti-drift: ${which} local models; answers are junk from ${pollutionThreshold} on`]),
    ...(isSensing ? [`Proprioception: ${senses.join('; ')}`] : []),
  ];
}
