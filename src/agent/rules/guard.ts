// Decides which of a model's calls run. Blocked are a call that was made before with the same
// result, a pattern of calls that repeats, and a tool that keeps failing in the same way: nothing
// new would result. A call whose result changes is no repetition. Derived only from the recorded
// turn, so that a turn resumed after a crash is judged alike.

import type { ResultId } from '../../kernel/message/ids.ts';
import type { ToolEntry } from '../../kernel/message/transcript.ts';
import { withoutBoundaries } from '../../kernel/message/untrusted.ts';

export type GuardedCall = {
  /** Equal for the same tool with the same arguments, as parsed by the toolbox. */
  readonly key: string;
  readonly tool: string;
  /** After a call that `acts`, another one may have a different result or effect. */
  readonly kind: 'looks' | 'asks_the_net' | 'speaks' | 'acts' | 'not_understood';
  /** Undefined: not run yet. */
  readonly result?: ToolEntry;
};

type BlockedWhy = 'repeated' | 'once' | 'loop' | 'failing' | 'too_many';

export type Verdict =
  | { readonly kind: 'run' }
  | {
      readonly kind: 'blocked';
      readonly why: BlockedWhy;
      /** How often it was made before, or failed. */
      readonly times: number;
      /** The call whose result is used for this one. */
      readonly earlier?: GuardedCall;
    };

/** Of a tool without effects. */
const SAME_CALLS: Partial<Record<GuardedCall['kind'], number>> = {
  ...{ looks: 2, asks_the_net: 6, not_understood: 2 },
};
/** The text of a skill that was read is in the conversation already. */
const ONCE = ['read_skill'];
/** Failures of one tool in the same way, whatever its arguments. */
const SAME_FAILURES = 3;
/** Repetitions of a pattern that count as a loop. */
const PATTERN_REPEATS = 3;
const MAX_PATTERN_CALLS = 6;
/** Calls of one answer. */
const MAX_CALLS_AT_ONCE = 40;

const RUN: Verdict = { kind: 'run' };

/**
 * `rounds`: the calls of the turn's answers, oldest first. Returns one verdict for each call of the
 * last round; calls that have a result are not judged again. `sameCalls`: limit of identical calls of
 * a tool with effects.
 */
export function judgeCalls(
  rounds: readonly (readonly GuardedCall[])[],
  sameCalls: number,
): readonly Verdict[] {
  const ran = rounds.slice(0, -1).flat().filter(wasRun);
  return (rounds.at(-1) ?? []).map((call, index) => {
    const verdict = call.result === undefined ? judge(call, index, ran, sameCalls) : RUN;
    if (verdict.kind === 'run' && wasRun(call)) ran.push(call);
    return verdict;
  });
}

const wasRun = ({ result }: GuardedCall) => result?.isBlocked !== true;

function judge(
  call: GuardedCall,
  index: number,
  ran: readonly GuardedCall[],
  sameCalls: number,
): Verdict {
  if (index >= MAX_CALLS_AT_ONCE) {
    return { kind: 'blocked', why: 'too_many', times: MAX_CALLS_AT_ONCE };
  }
  return (
    onceOnly(call, ran) ??
    failing(call, ran) ??
    repeated(call, ran, sameCalls) ??
    loop(call, ran) ??
    RUN
  );
}

function onceOnly(call: GuardedCall, ran: readonly GuardedCall[]): Verdict | undefined {
  if (!ONCE.includes(call.tool)) return undefined;
  const earlier = ran.find(({ key, result }) => key === call.key && result?.status !== 'failed');
  return earlier && { kind: 'blocked', why: 'once', times: 1, earlier };
}

function failing(call: GuardedCall, ran: readonly GuardedCall[]): Verdict | undefined {
  const understood = (one: GuardedCall) => one.kind !== 'not_understood';
  // An action since then may have fixed it.
  const since = ran.slice(ran.findLastIndex(hasActed) + 1);
  const same = since.filter(
    (one) => one.tool === call.tool && understood(one) === understood(call),
  );
  const last = same.at(-1);
  if (last === undefined || !isFault(last)) return undefined;
  const times = trailing(same, (one) => isFault(one) && isSame(one.result, last.result));
  if (times < SAME_FAILURES) return undefined;
  return { kind: 'blocked', why: 'failing', times, earlier: last };
}

/** Calls that need an approval do not count: each is a question of its own. */
const isFault = ({ result }: GuardedCall) =>
  result?.status === 'failed' &&
  result.failure !== undefined &&
  result.failure !== 'permission' &&
  result.failure !== 'waiting' &&
  result.failure !== 'cancelled';

function repeated(
  call: GuardedCall,
  ran: readonly GuardedCall[],
  sameCalls: number,
): Verdict | undefined {
  const isReset = call.kind === 'looks' || call.kind === 'acts';
  const lastAct = ran.findLastIndex((one) => hasActed(one) && one.key !== call.key);
  const since = isReset ? ran.slice(lastAct + 1) : ran;
  const same = since.filter(({ key }) => key === call.key);
  const newest = same.findLast(({ result }) => result !== undefined);
  const isLikeNewest = ({ result }: GuardedCall) =>
    result === undefined || isSame(result, newest?.result);
  const times = trailing(same, isLikeNewest);
  if (times < (SAME_CALLS[call.kind] ?? sameCalls)) return undefined;
  const blocked = { kind: 'blocked', why: 'repeated', times } as const;
  return newest === undefined ? blocked : { ...blocked, earlier: newest };
}

/** The call may have changed something: it succeeded, or its outcome is unknown. */
const hasActed = ({ kind, result }: GuardedCall) => kind === 'acts' && result?.status !== 'failed';

/** The call would start another repetition of a pattern with the same results. */
function loop(call: GuardedCall, ran: readonly GuardedCall[]): Verdict | undefined {
  for (let length = 2; length <= MAX_PATTERN_CALLS; length += 1) {
    const seen = ran.slice(-length * PATTERN_REPEATS);
    if (seen.length < length * PATTERN_REPEATS) return undefined;
    const goesOn = seen.at(-length)?.key === call.key;
    const isPattern = seen.every((one, at) => at < length || isAlike(one, seen[at - length]));
    const [first, ...rest] = seen.slice(0, length);
    if (!goesOn || !isPattern || rest.every(({ key }) => key === first?.key)) continue;
    const earlier = seen.at(-length);
    const blocked = { kind: 'blocked', why: 'loop', times: PATTERN_REPEATS } as const;
    return earlier === undefined ? blocked : { ...blocked, earlier };
  }
  return undefined;
}

function isAlike(one: GuardedCall, other: GuardedCall | undefined): boolean {
  if (one.key !== other?.key) return false;
  return one.result === undefined || isSame(one.result, other.result);
}

/** Ignores what is new in every result: its id, and the boundary around untrusted content. */
function isSame(one: ToolEntry | undefined, other: ToolEntry | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined || one.status !== other.status) return false;
  return plainText(one) === plainText(other);
}

function plainText({ text, resultId }: ToolEntry): string {
  const plain = withoutBoundaries(text);
  return resultId === undefined ? plain : plain.replaceAll(resultId, '');
}

function trailing<Item>(items: readonly Item[], fits: (item: Item) => boolean): number {
  return items.length - 1 - items.findLastIndex((item) => !fits(item));
}

// The text for the model about a call that was not run, with the earlier result that replaces it.

type Blocked = Extract<Verdict, { readonly kind: 'blocked' }>;

const GO_ON = 'Use what you have, try something else, or answer without this.';

/** The earlier result itself, or its id; undefined where there is neither. */
export type EarlierResult =
  | { readonly kind: 'shown'; readonly result: ToolEntry }
  | { readonly kind: 'named'; readonly id: ResultId };

export function blockedText({ why, times }: Blocked, earlier: EarlierResult | undefined): string {
  const named = earlier?.kind === 'named' ? ` read_result with id "${earlier.id}" shows it.` : '';
  const shown = earlier?.kind === 'shown' ? [earlier.result.text] : [];
  return [`[Not run: ${reasonOf(why, times)} ${GO_ON}${named}]`, ...shown].join('\n');
}

function reasonOf(why: Blocked['why'], times: number): string {
  switch (why) {
    case 'repeated':
      return `this same call was made ${times === 1 ? 'once' : `${times} times`} in this answer, with the same result.`;
    case 'once':
      return 'this was already read in this answer and has not changed.';
    case 'loop':
      return `these calls repeat in a loop; they gave the same results ${times} times.`;
    case 'failing':
      return `this tool failed ${times} times in a row in the same way.`;
    case 'too_many':
      return `one answer may make ${times} calls at once; the calls before this one were run.`;
  }
}

// Detects an answer that loops: a passage that repeats at its end, as small models produce without
// a stop. Only verbatim repetition counts: refrains, tables with similar rows and counted lists do
// not. The limit is ten times higher for code, tables, forms, figures and repetitions that the
// person requested.

/** Longest passage, in characters. */
const MAX_PERIOD = 600;
/** Shorter repetitions are rulers, ornaments and blank lines. */
const MIN_CHARS = 1200;
const DATA_FACTOR = 10;
const LOOKED_AT_CHARS = 60_000;
const ASKED_CHARS = 20_000;
/** Words beside the passage; a request that only quotes it has none. */
const MIN_OTHER_WORDS = 2;

export type AnswerLoop = {
  /** The end of the first passage: nothing before it is repeated. */
  readonly saidAt: number;
  readonly repeats: number;
};

/**
 * `repeats`: the number that counts as a loop; `asked`: the person's text; undefined: no loop at
 * the end.
 */
export function loopIn(text: string, repeats: number, asked = ''): AnswerLoop | undefined {
  const tail = text.trimEnd();
  if (tail.length < MIN_CHARS || !endsAgain(tail)) return undefined;
  const reversed = [...tail.slice(-LOOKED_AT_CHARS)].reverse();
  const inCode = isInCode(tail);
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    const length = period + matchAt(reversed, period);
    const times = Math.floor(length / period);
    if (times < repeats || length < MIN_CHARS) continue;
    const passage = reversed.slice(0, period).reverse().join('');
    const isData = inCode || isNoProse(passage) || isWanted(onceOf(passage), asked);
    const least = isData ? DATA_FACTOR : 1;
    if (times < repeats * least || length < MIN_CHARS * least) continue;
    const looped = reversed.slice(0, length - period).join('').length;
    return { saidAt: tail.length - looped, repeats: times };
  }
  return undefined;
}

/** A cheap check before the costly one: the last characters occur just before too. */
function endsAgain(tail: string): boolean {
  const end = tail.slice(-24);
  const before = tail.lastIndexOf(end, tail.length - end.length - 1);
  return before >= 0 && tail.length - end.length - before <= MAX_PERIOD * 2;
}

/** The number of characters from there on that equal the beginning. */
function matchAt(text: readonly string[], start: number): number {
  let length = 0;
  while (start + length < text.length && text[start + length] === text[length]) length += 1;
  return length;
}

/** Contains characters of code, tables, blanks and boxes of a form; or every line is indented. */
function isNoProse(passage: string): boolean {
  if (!/\p{L}/u.test(passage) || /[|\t{}<>=;]|_{3}|\.{4}|…{2}|\[ ?\]|[☐□]/.test(passage))
    return true;
  const lines = `${passage}${passage}`.split('\n').slice(1, -1);
  return lines.length > 0 && lines.every((line) => /^(?: {4}.|\s*$)/.test(line));
}

/** The shortest unit of a passage that repeats. */
function onceOf(passage: string): string {
  const period = `${passage}${passage}`.indexOf(passage, 1);
  return passage.slice(0, period);
}

/** Whether its words are part of a longer text of the person, starting anywhere in the passage. */
function isWanted(passage: string, asked: string): boolean {
  const said = wordsOf(asked.slice(0, ASKED_CHARS));
  const at = passage.search(/[^\p{L}\p{M}\p{N}]/u);
  const words = wordsOf(at < 0 ? passage : passage.slice(at) + passage.slice(0, at));
  if (words.length === 0 || said.length < words.length + MIN_OTHER_WORDS) return false;
  const all = ` ${said.join(' ')} `;
  return words.some((_, first) => {
    const turned = [...words.slice(first), ...words.slice(0, first)].join(' ');
    return all.includes(` ${turned} `);
  });
}

const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

function isInCode(text: string): boolean {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1;
}
