// What a small model is shown of its own earlier answers, so that it does not go on where it went
// astray: junk becomes a line, answers in nearly the same words the first of them. The newest four and
// all that others wrote stay as they are, and so does the record.

import { ownWords } from '../../../agent/rules/context-pack.ts';
import { firstSeqOf } from '../../../kernel/message/ids.ts';
import type { AssistantEntry, TranscriptEntry } from '../../../kernel/message/transcript.ts';
import { revealAll } from '../../../lib/html/hidden-text.ts';
import type { AntiDriftConfig, ProprioceptionConfig } from '../settings.ts';
import { driftOf, isNearlyTheSame, type ReadAnswer, readAnswer } from './anti-drift.ts';

type SteadyPolicy = Omit<AntiDriftConfig, 'enabled' | 'anchorInterval'>;

const NEWEST = 4;
/** Answers that others are held against. */
const MAX_FIRSTS = 20;
const PLACEHOLDER = /^\[An answer of yours (?:was left out here: |for the )[^\n]{1,200}\]$/;
const HIDDEN = /<\/?(?:think|thought|reason)/i;

/** `canReadBack`: read_earlier is there. */
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

/** For each answer that says again what the first of at least `least` said: for which time. */
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
  if (isJunk) return 'was left out here: it said little or repeated itself';
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

/** What it thought aloud is no example to follow. */
function revealed(entry: AssistantEntry): AssistantEntry {
  if (!HIDDEN.test(entry.text)) return entry;
  const text = revealAll(entry.text);
  return text === entry.text ? entry : { ...entry, text };
}

// What /status says of how models are kept on their course; nothing where that is switched off.

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
    proprioception.ahaChannel && 'critical reports of helpers',
  ].filter((sense) => sense !== false);
  const isSensing = proprioception.enabled && senses.length > 0;
  return [
    ...(enabled === 'off'
      ? []
      : [`Anti-drift: ${which} local models; answers are junk from ${pollutionThreshold} on`]),
    ...(isSensing ? [`Proprioception: ${senses.join('; ')}`] : []),
  ];
}
