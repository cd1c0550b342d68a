// `nanobot replay`: replays recorded turns with the recorded answers or with another model, prompt
// or setting, and prints the differences.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { Command, Option } from 'commander';
import type { PromptFile } from '../../agent/rules/prompt.ts';
import { parseMoney } from '../../cli/flag-values.ts';
import {
  CommandFailure,
  EXIT,
  printable,
  type Terminal,
  untilStopped,
} from '../../cli/terminal.ts';
import type { ConfigOverrides } from '../../kernel/config/check.ts';
import { sessionKey } from '../../kernel/message/ids.ts';
import { type DiffLine, shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { OpenedReplay, ReplayWish } from './build-replay.ts';
import type { PlayedTurn } from './replay.ts';
import type { Pricing, RecordedTurn, TurnOutline } from './rules/replay.ts';

const MARKS: Readonly<Record<DiffLine['kind'], string>> = { same: ' ', gone: '-', new: '+' };
const MAX_LINE_CHARS = 200;
/** Lines of context around a difference. */
const AROUND = 2;
const MICROS = 1_000_000;

function replayLines(turn: PlayedTurn, { currency }: Pricing): readonly string[] {
  const head = t`turn ${turn.place}  ${turn.id}  "${turn.about}"`;
  if (turn.kind === 'skipped') return [t`${head}  skipped: ${turn.why}`];
  const { recorded, played, comparison, notes, asked } = turn;
  const { isSame, calls, answer } = comparison;
  const took = `  ${modelsOf(recorded)} -> ${modelsOf(played)}: ${tookText(recorded, currency)} -> ${tookText(played, currency)}`;
  const circumstances = [
    ...notes.map((note) => `  ${note}`),
    ...(asked.every(({ kind }) => kind === 'same') ? [] : section('request', asked)),
  ];
  if (isSame) {
    const isByOthers = modelsOf(recorded) !== modelsOf(played);
    return [t`${head}  the same`, ...circumstances, ...(isByOthers ? [took] : [])];
  }
  const isEndedOtherwise = recorded.outcome !== played.outcome;
  return [
    `${head}  DIFFERENT`,
    ...circumstances,
    ...(isEndedOtherwise ? [t`  ended: ${recorded.outcome} -> ${played.outcome}`] : []),
    ...section('calls', calls),
    ...section('answer', answer),
    took,
  ];
}

const modelsOf = ({ models }: TurnOutline) =>
  models.length === 0 ? t`no model` : models.join(', ');

function tookText({ rounds, inputTokens, outputTokens, cost }: TurnOutline, currency: string) {
  const money = (cost.spent.micros / MICROS).toFixed(4);
  const price = cost.unpriced > 0 ? t`unknown price` : `${money} ${currency}`;
  return t`${rounds} model calls, ${inputTokens} + ${outputTokens} tokens, ${price}`;
}

function section(title: string, lines: readonly DiffLine[]): readonly string[] {
  const changed = lines.flatMap(({ kind }, at) => (kind === 'same' ? [] : [at]));
  if (changed.length === 0) return [t`  ${title}: the same`];
  const isNear = (at: number) => changed.some((other) => Math.abs(other - at) <= AROUND);
  const shown = lines.flatMap(({ kind, text }, at) =>
    isNear(at) ? [`    ${MARKS[kind]} ${cut(text)}`] : [],
  );
  return [`  ${title}:`, ...shown];
}

const cut = (text: string) => shortened(text, MAX_LINE_CHARS, ' [...]');

type Flags = {
  readonly turn?: readonly string[];
  readonly recorded?: boolean;
  readonly model?: string;
  readonly prompt?: string;
  readonly config?: string;
  readonly set?: readonly string[];
  readonly maxCost?: number;
  readonly json?: boolean;
};

export function replayCommand(terminal: Terminal): Command {
  return new Command('replay')
    .description(t`replay recorded turns and show differences; tools have no effect`)
    .argument('<session>', t`key from "sessions list", e.g. telegram:42`)
    .option('--turn <which...>', t`only these turns: number from 1, id, or "last"`)
    .addOption(
      new Option('--recorded', t`use the recorded answers of the models (default)`).conflicts([
        'model',
        'prompt',
      ]),
    )
    .option('--model <name>', t`ask this model, the "recorded" one, or the one of "today"`)
    .option(
      '--prompt <which>',
      t`system prompt: "recorded" (default), "today", or a file that replaces the part of the same name`,
    )
    .option('--config <which>', t`settings: "recorded" (default), "today", or a file`)
    .option('--set <key=value>', t`change a setting, e.g. agents.defaults.temperature=0`, collected)
    .option('--max-cost <money>', t`stop before this cost`, parseMoney)
    .option('--json', t`print as JSON`)
    .action((session: string, flags: Flags) => replay(terminal, session, flags));
}

async function replay(terminal: Terminal, session: string, flags: Flags) {
  const { openReplay, readTurns } = await import('./build-replay.ts');
  const { home, env } = terminal;
  const key = sessionKey(session);
  const known = await readTurns(home, key);
  if (known.length === 0)
    throw new CommandFailure(EXIT.notFound, t`there are no recorded turns of ${session}`);
  const chosen = chosenTurns(known, flags.turn);
  await using resources = new AsyncDisposableStack();
  const opened = await openReplay({ home, env, session: key, ...(await wishOf(flags)) }, resources);
  terminal.note(t`${session}: ${chosen.length} of ${known.length} turns, with ${opened.modelName}`);
  const played = await untilStopped(
    () => terminal.note(t`Stopping.`),
    (signal) => playAll(terminal, opened, chosen, flags.json === true, signal),
  );
  if (flags.json === true) terminal.printJson(played);
  await conclude(terminal, opened, played, chosen.length);
}

/** In the order of the conversation. @throws CommandFailure where a turn does not exist */
function chosenTurns(
  known: readonly RecordedTurn[],
  wanted: readonly string[] | undefined,
): readonly RecordedTurn[] {
  if (wanted === undefined) return known;
  const isMeant = ({ id, place }: RecordedTurn, which: string) =>
    id === which || String(place) === which || (which === 'last' && place === known.length);
  const missing = wanted.find((which) => !known.some((turn) => isMeant(turn, which)));
  if (missing !== undefined) {
    const message = t`there is no turn ${missing}; use 1 to ${known.length}`;
    throw new CommandFailure(EXIT.notFound, message);
  }
  return known.filter((turn) => wanted.some((which) => isMeant(turn, which)));
}

type Wish = Pick<ReplayWish, 'model' | 'overrides' | 'prompt' | 'config' | 'maxCost'>;

async function wishOf(flags: Flags): Promise<Wish> {
  const { model = 'recorded', prompt = 'recorded', config = 'recorded', set, maxCost } = flags;
  const isSet = (set !== undefined || flags.config !== undefined) && flags.recorded !== true;
  const isNew = flags.model !== undefined || flags.prompt !== undefined || isSet;
  const asked = isOfRecord(model) ? { kind: model } : ({ kind: 'named', name: model } as const);
  if (!isOfRecord(config)) await promptIn(config);
  return {
    model: isNew ? asked : 'record',
    overrides: await overridesOf(set ?? []),
    prompt: isOfRecord(prompt) ? prompt : await promptIn(prompt),
    config: isOfRecord(config) ? config : { file: config },
    maxCost,
  };
}

/** A file with such a name has to be given with its folder: ./today */
const isOfRecord = (which: string): which is 'recorded' | 'today' =>
  which === 'recorded' || which === 'today';

/** @throws CommandFailure where it cannot be read */
async function promptIn(path: string): Promise<PromptFile> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new CommandFailure(EXIT.notFound, t`cannot read ${path}: ${error.code}`);
  });
  return { name: basename(path), text };
}

async function playAll(
  terminal: Terminal,
  { deps }: OpenedReplay,
  chosen: readonly RecordedTurn[],
  isJson: boolean,
  signal: AbortSignal,
): Promise<readonly PlayedTurn[]> {
  const { replayTurn } = await import('./replay.ts');
  const played: PlayedTurn[] = [];
  try {
    for (const turn of chosen) {
      if (deps.model !== 'record') terminal.note(`  ${played.length + 1}/${chosen.length} ...`);
      const one = await replayTurn(deps, turn, signal);
      played.push(one);
      if (!isJson)
        for (const line of replayLines(one, deps.pricing)) terminal.print(printable(line));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return played;
}

/** @throws CommandFailure where it was interrupted, or where the replay differs from the record */
async function conclude(
  terminal: Terminal,
  { deps, cost }: OpenedReplay,
  played: readonly PlayedTurn[],
  wanted: number,
) {
  const compared = played.flatMap((turn) => (turn.kind === 'played' ? [turn] : []));
  const same = compared.filter(({ comparison }) => comparison.isSame).length;
  const left = played.length - compared.length;
  terminal.note(
    t`${same} of ${compared.length} turns the same${left === 0 ? '' : t`, ${left} left out`}`,
  );
  if (cost !== undefined) {
    const { costText } = await import('../eval/report-text.ts');
    terminal.note(costText(cost.total()));
  }
  if (played.length < wanted) throw new CommandFailure(EXIT.interrupted, 'stopped');
  if (deps.model === 'record' && same < compared.length) {
    throw new CommandFailure(EXIT.failure, t`the result differs from the record`);
  }
}

const collected = (text: string, before: readonly string[] = []) => [...before, text];

/** @throws CommandFailure where a setting does not exist */
async function overridesOf(settings: readonly string[]): Promise<ConfigOverrides> {
  const { findKey, parseValue } = await import('../../kernel/config/value.ts');
  const pairs = settings.map((text) => {
    const [, path = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    const found = findKey(path);
    if (found.kind === 'found' && found.key.type !== 'section') {
      return [found.key.path, parseValue(found.key, value)] as const;
    }
    throw new CommandFailure(EXIT.usage, t`"${text}" is not a setting; use key=value`);
  });
  return Object.fromEntries(pairs);
}
