// A turn that was played again, as lines for a terminal: the same, or what is different.

import { shortened } from '../../lib/text/cut.ts';
import type { DiffLine } from '../../lib/text/lines.ts';
import type { PlayedTurn } from './replay.ts';
import type { Pricing, TurnOutline } from './rules/replay.ts';

const MARKS: Readonly<Record<DiffLine['kind'], string>> = { same: ' ', gone: '-', new: '+' };
const MAX_LINE_CHARS = 200;
/** Lines around a difference that are shown with it. */
const AROUND = 2;
const MICROS = 1_000_000;

export function replayLines(turn: PlayedTurn, { currency }: Pricing): readonly string[] {
  const head = `turn ${turn.place}  ${turn.id}  "${turn.about}"`;
  if (turn.kind === 'skipped') return [`${head}  left out: ${turn.why}`];
  const { recorded, played, comparison, notes, asked } = turn;
  const { isSame, calls, answer } = comparison;
  const took = `  ${modelsOf(recorded)} -> ${modelsOf(played)}: ${tookText(recorded, currency)} -> ${tookText(played, currency)}`;
  const circumstances = [
    ...notes.map((note) => `  ${note}`),
    ...(asked.every(({ kind }) => kind === 'same') ? [] : section('asked with', asked)),
  ];
  if (isSame) {
    const isByOthers = modelsOf(recorded) !== modelsOf(played);
    return [`${head}  the same`, ...circumstances, ...(isByOthers ? [took] : [])];
  }
  const ended =
    recorded.outcome === played.outcome
      ? []
      : [`  ended: ${recorded.outcome} -> ${played.outcome}`];
  return [
    `${head}  DIFFERENT`,
    ...circumstances,
    ...ended,
    ...section('calls', calls),
    ...section('answer', answer),
    took,
  ];
}

const modelsOf = ({ models }: TurnOutline) => (models.length === 0 ? 'nobody' : models.join(', '));

function tookText({ rounds, inputTokens, outputTokens, cost }: TurnOutline, currency: string) {
  const money = (cost.spent.micros / MICROS).toFixed(4);
  const price = cost.unpriced > 0 ? 'no known price' : `${money} ${currency}`;
  return `${rounds} model calls, ${inputTokens} + ${outputTokens} tokens, ${price}`;
}

function section(title: string, lines: readonly DiffLine[]): readonly string[] {
  const changed = lines.flatMap(({ kind }, at) => (kind === 'same' ? [] : [at]));
  if (changed.length === 0) return [`  ${title}: the same`];
  const isNear = (at: number) => changed.some((other) => Math.abs(other - at) <= AROUND);
  const shown = lines.flatMap(({ kind, text }, at) =>
    isNear(at) ? [`    ${MARKS[kind]} ${cut(text)}`] : [],
  );
  return [`  ${title}:`, ...shown];
}

const cut = (text: string) => shortened(text, MAX_LINE_CHARS, ' [...]');
