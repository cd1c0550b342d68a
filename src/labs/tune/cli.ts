// The command `nanobot tune`: measures the models of local servers, or reads figures from a file,
// recommends one and, if requested, selects it for `local`.

import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError } from 'commander';
import { parseCount } from '../../cli/flag-values.ts';
import {
  CommandFailure,
  EXIT,
  printable,
  type Terminal,
  textTable,
  untilStopped,
} from '../../cli/terminal.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  type ModelMeasure,
  measureFileSchema,
  type TuneVerdict,
  tuneVerdict,
  USUAL_DEMANDS,
  type Weighed,
} from './rules/tune.ts';

type Flags = {
  readonly model?: readonly string[];
  readonly from?: string;
  readonly minQuality: number;
  readonly minTools: number;
  readonly minSpeed: number;
  readonly minContext: number;
  readonly apply?: boolean;
  readonly json?: boolean;
};

type Measured = Awaited<ReturnType<typeof measureEach>>;

/** Number of alternatives shown after the best model. */
const ALTERNATIVES = 2;

export function tuneCommand(terminal: Terminal): Command {
  return new Command('tune')
    .description(t`measure the models of local servers and recommend one`)
    .option('--model <name...>', t`only these models; models of services are possible, too`)
    .option('--from <file>', t`use figures from a file made with --json instead of measuring`)
    .option(
      '--min-quality <share>',
      t`minimum share of correct answers, 0 to 1`,
      parseShare,
      USUAL_DEMANDS.minQuality,
    )
    .option(
      '--min-tools <share>',
      t`minimum share of correct tool calls, 0 to 1`,
      parseShare,
      USUAL_DEMANDS.minToolSuccess,
    )
    .option(
      '--min-speed <n>',
      t`minimum tokens per second`,
      parseCount,
      USUAL_DEMANDS.minTokensPerSecond,
    )
    .option(
      '--min-context <n>',
      t`minimum context in tokens`,
      parseCount,
      USUAL_DEMANDS.minContextTokens,
    )
    .option('--apply', t`save the best model as the model for /local`)
    .option('--json', t`print as JSON`)
    .action((flags: Flags) => tune(terminal, flags));
}

async function tune(terminal: Terminal, flags: Flags) {
  const { measured, failed, isStopped } =
    flags.from === undefined ? await measureAll(terminal, flags) : await readFigures(flags.from);
  const { minQuality, minTools, minSpeed, minContext } = flags;
  const { suitable, rejected } = tuneVerdict(measured, {
    ...USUAL_DEMANDS,
    ...{ minQuality, minToolSuccess: minTools },
    ...{ minTokensPerSecond: minSpeed, minContextTokens: minContext },
  });
  const [best] = suitable;
  const out = [...rejected, ...failed];
  if (flags.json === true) {
    terminal.printJson({ version: 1, measured, best: best?.model ?? '', rejected: out });
  } else {
    show(terminal, suitable, out);
  }
  // The best model may be among those that were not measured.
  if (isStopped) throw new CommandFailure(EXIT.interrupted, 'stopped');
  if (best === undefined)
    throw new CommandFailure(EXIT.failure, t`no model meets the requirements`);
  if (flags.apply === true) await apply(terminal, best.model);
}

async function measureAll(terminal: Terminal, { model }: Flags): Promise<Measured> {
  const { openHome } = await import('../../kernel/config/files/first-run.ts');
  const { openTuning } = await import('./build-tune.ts');
  const { home, env } = terminal;
  const { loaded } = await openHome(home, env);
  await using resources = new AsyncDisposableStack();
  const tuning = await openTuning({ home, env, loaded, maxCost: undefined }, resources);
  return await untilStopped(
    () => terminal.note(t`Stopping.`),
    async (signal) => {
      const names = model ?? (await tuning.localModels(signal));
      if (names.length === 0) throw new CommandFailure(EXIT.notFound, NO_MODELS);
      return measureEach(terminal, tuning, names, signal);
    },
  );
}

const NO_MODELS =
  t`no local model server answers. Start one (Ollama, LM Studio, llama.cpp, vLLM), set ` +
  t`providers.local.apiBase to its address, or name models with --model`;

async function measureEach(
  terminal: Terminal,
  tuning: import('./build-tune.ts').Tuning,
  names: readonly string[],
  signal: AbortSignal,
) {
  const measured: ModelMeasure[] = [];
  /** Models that could not be measured, with the reason. */
  const failed: TuneVerdict['rejected'][number][] = [];
  for (const name of names) {
    const tell = (done: number, planned: number) =>
      terminal.note(printable(`  ${name}: ${done}/${planned}`));
    try {
      measured.push(await tuning.measure(name, tell, signal));
    } catch (error) {
      if (signal.aborted) return { measured, failed, isStopped: true };
      if (!(error instanceof NanobotError)) throw error;
      failed.push({ model: name, reasons: [t`failed: ${error.message}`] });
    }
  }
  return { measured, failed, isStopped: false };
}

async function readFigures(path: string): Promise<Measured> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new CommandFailure(EXIT.notFound, t`cannot read ${path}: ${error.code}`);
  });
  const found = measureFileSchema.safeParse(parseJson(text));
  if (found.success) return { measured: found.data.measured, failed: [], isStopped: false };
  const [issue] = found.error.issues;
  const at = issue === undefined ? '' : ` (${issue.path.join('.')}: ${issue.message})`;
  throw new CommandFailure(
    EXIT.usage,
    t`${path} has no figures${at}; create it with: nanobot tune --json`,
  );
}

function show(terminal: Terminal, suitable: readonly Weighed[], out: TuneVerdict['rejected']) {
  const [best, ...others] = suitable;
  const shown = best === undefined ? [] : [best, ...others.slice(0, ALTERNATIVES)];
  const head = ['model', 'score', 'right', 'tools', 'long', 'first', 'tokens/s', 'context'];
  if (shown.length > 0) {
    for (const line of textTable([head, ...shown.map(rowOf)])) terminal.print(line);
  }
  for (const { model, reasons } of out) {
    terminal.print(printable(t`not suitable: ${model}: ${reasons.join('; ')}`));
  }
  if (best !== undefined) terminal.print(printable(t`best: ${best.model}`));
}

function rowOf(one: Weighed): readonly string[] {
  const percent = (part: number) => `${Math.round(part * 100)} %`;
  return [
    one.model,
    one.score.toFixed(2),
    percent(one.quality),
    percent(one.toolSuccess),
    percent(1 - one.overflowRate),
    t`${Math.round(one.firstTokenMs)} ms`,
    one.tokensPerSecond.toFixed(1),
    String(one.contextTokens),
  ];
}

async function apply(terminal: Terminal, model: string) {
  const { readRawConfig, saveConfig } = await import('../../kernel/config/files/config-file.ts');
  const { withValue } = await import('../../kernel/config/json-paths.ts');
  const { home, env } = terminal;
  await saveConfig(home, withValue(await readRawConfig(home), 'localModels.model', model), env);
  terminal.note(t`Saved ${model} as localModels.model; /local switches a conversation to it.`);
}

function parseShare(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError(t`Use a number from 0 to 1, e.g. 0.7.`);
}
