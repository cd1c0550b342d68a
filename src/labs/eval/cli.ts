// The command `nanobot eval`: measures a model, or the whole agent with it, and compares results.

import { Command, Option } from 'commander';
import { parseCount, parseList, parseMoney, wholeNumber } from '../../cli/flag-values.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { HanoiFlags } from './hanoi.ts';
import type { HaystackOptions } from './haystack.ts';
import { LEARN_FAMILIES, type LearnOptions } from './learn.ts';
import { type EvalFlags, reportResults, runEval } from './run-eval.ts';
import type { SprintOptions } from './sprint.ts';

const DEFAULT_SEED = 42;
const DEFAULT_MAX_TOKENS = 1024;
const MAX_DISKS = 12;
const MAX_AHEAD = 7;
const MAX_SIZE = 20_000_000;
const MAX_ITEMS = 10_000;

export function evalCommand(terminal: Terminal): Command {
  const command = new Command('eval').description(t`benchmark a model, or the whole agent with it`);
  addHanoi(command, terminal);
  addHaystack(command, terminal);
  addLearn(command, terminal);
  addSprint(command, terminal);
  command
    .command('report')
    .description(t`compare saved results; --html writes a page with plots`)
    .option('--html <file>', t`file for the page`)
    .option('--json', t`print as JSON`)
    .action((flags: { readonly html?: string; readonly json?: boolean }) =>
      reportResults(terminal, flags),
    );
  return command;
}

function addHanoi(command: Command, terminal: Terminal) {
  type Flags = Omit<HanoiFlags, 'gate'> & { readonly solve?: boolean; readonly gate?: boolean };
  shared(command.command('hanoi').description(t`Tower of Hanoi: many small steps without an error`))
    .option('--disks <n>', 'disks', wholeNumber(1, MAX_DISKS), 5)
    .option('--calibrate', t`single moves from the whole solution (default)`)
    .option('--samples <n>', t`number of moves`, wholeNumber(1, MAX_ITEMS), 100)
    .addOption(
      new Option('--solve', t`the whole solution, each move decided by votes`).conflicts(
        'calibrate',
      ),
    )
    .option('-k, --ahead-by <k>', t`votes by which a move must lead`, wholeNumber(1, MAX_AHEAD), 1)
    .option('--max-votes <n>', t`most answers for one move`, wholeNumber(1, 99), 15)
    .option('--gate', t`accept a move if two voters agree; otherwise vote in full`)
    .action(async (flags: EvalFlags & Flags) => {
      const { hanoi } = await import('./hanoi.ts');
      const { seed, disks, samples, aheadBy, maxVotes } = flags;
      const how =
        flags.solve === true
          ? ({ mode: 'solve', aheadBy, maxVotes, gate: flags.gate === true } as const)
          : ({ mode: 'calibrate', samples } as const);
      await runEval(terminal, hanoi({ seed, disks, ...how }), flags);
    });
}

function addHaystack(command: Command, terminal: Terminal) {
  const [sizes, depths] = [
    [4000, 16_000, 64_000],
    [0, 25, 50, 75, 100],
  ];
  shared(command.command('haystack').description(t`find facts in long texts, by size and depth`))
    .option('--sizes <list>', t`sizes of the texts in characters`, list(100, MAX_SIZE), sizes)
    .option(
      '--depths <list>',
      t`positions of the fact in percent of the text`,
      list(0, 100),
      depths,
    )
    .option('--needles <n>', t`facts per question`, wholeNumber(1, 20), 1)
    .option('--no-aggregate', t`leave out questions about the whole text`)
    .addOption(
      new Option('--through <way>', t`the model reads the text, or the agent searches its memory`)
        .choices(['text', 'memory'])
        .default('text'),
    )
    .action(async (flags: EvalFlags & HaystackOptions) => {
      const { haystack } = await import('./haystack.ts');
      await runEval(terminal, haystack(flags), flags);
    });
}

function addLearn(command: Command, terminal: Terminal) {
  shared(
    command
      .command('learn')
      .description(t`tasks in a row, with feedback that helps in later tasks`),
  )
    .addOption(
      new Option('--family <name>', t`kind of task`).choices(LEARN_FAMILIES).default('arithmetic'),
    )
    .option('--tasks <n>', t`number of tasks`, wholeNumber(1, MAX_ITEMS), 50)
    .option('--depth <n>', t`files per chain (tool-chain)`, wholeNumber(1, 10), 3)
    .option('--tries <n>', t`attempts per task (other families)`, wholeNumber(1, 10), 3)
    .action(async (flags: EvalFlags & LearnOptions) => {
      const { learn } = await import('./learn.ts');
      await runEval(terminal, learn(flags), flags);
    });
}

function addSprint(command: Command, terminal: Terminal) {
  shared(command.command('sprint').description(t`various tasks for the whole agent with its tools`))
    .option('--tasks <n>', t`number of tasks`, wholeNumber(1, MAX_ITEMS), 18)
    .action(async (flags: EvalFlags & SprintOptions) => {
      const { sprint } = await import('./sprint.ts');
      await runEval(terminal, sprint(flags), flags);
    });
}

function shared(command: Command): Command {
  return command
    .option('--model <name>', t`model to measure; default: the main model`)
    .option('--seed <n>', t`seed; the same seed creates the same tasks`, parseCount, DEFAULT_SEED)
    .option('--max-cost <money>', t`stop before this cost`, parseMoney)
    .option(
      '--max-tokens <n>',
      t`most tokens per answer`,
      wholeNumber(16, 200_000),
      DEFAULT_MAX_TOKENS,
    )
    .option('--json', t`print the result as JSON`);
}

function list(minimum: number, maximum: number) {
  const one = wholeNumber(minimum, maximum);
  return (text: string): readonly number[] => parseList(text).map(one);
}
