// The command `nanobot doctor`: finds problems and says what to do. With `--fix` it shows what it can
// fix without losing anything, asks once, and does it. doctor/checks.ts has the checks.

import { Command } from 'commander';
import { t } from '../lib/texts.ts';
import type { Finding, Trouble } from './doctor/machine-checks.ts';
import { explainError } from './explain-error.ts';
import { CommandFailure, confirmOrStop, EXIT, type Terminal } from './terminal.ts';

type DoctorFlags = {
  readonly live?: boolean;
  readonly fix?: boolean;
  readonly only?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
};

const SIGNS = { ok: '✓', warn: '!', fail: '✗' } as const;
const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const CHECK_COLUMNS = 16;

export function doctorCommand(terminal: Terminal): Command {
  return new Command('doctor')
    .description(t`find problems and say how to fix them`)
    .option(
      '--live',
      t`also send a test request to the model, the voice servers and the embedding model`,
    )
    .option('--fix', t`show what can be fixed without losing anything, and fix it`)
    .option('--only <check>', t`with --fix: only what this check found`)
    .option('-y, --yes', t`with --fix: do not ask`)
    .option('--json', t`print as JSON`)
    .action((flags: DoctorFlags) => runDoctor(terminal, flags));
}

async function runDoctor(terminal: Terminal, flags: DoctorFlags): Promise<void> {
  const { examine } = await import('./doctor/checks.ts');
  const json = flags.json === true;
  let failures: Failures = new Map();
  const show = (found: readonly Finding[]) => {
    if (json) terminal.printJson(found.map((finding) => asJson(finding, failures)));
    else for (const finding of found) printFinding(terminal, finding);
  };
  const before = await examine(terminal, flags.live === true);
  const isWanted = ({ check }: Finding) => flags.only === undefined || flags.only === check;
  const fixable = flags.fix === true ? before.filter(isFixable).filter(isWanted) : [];
  if (!json || fixable.length === 0) show(before);
  let findings = before;
  if (fixable.length > 0) {
    failures = await applyFixes(terminal, fixable, flags.yes === true);
    findings = await examine(terminal, flags.live === true);
    show(findings);
  } else if (flags.fix === true) {
    terminal.note(t`Nothing here can be fixed automatically.`);
  }
  const levels = findings.map(({ level }) => level);
  if (levels.includes('fail')) throw new CommandFailure(EXIT.failure);
  if (levels.includes('warn')) throw new CommandFailure(EXIT.warnings);
}

type Fixable = Trouble & { readonly fix: NonNullable<Trouble['fix']> };
const isFixable = (finding: Finding): finding is Fixable => finding.fix !== undefined;

/** Why a fix failed, by its text. */
type Failures = ReadonlyMap<string, string>;

/** Fields are documented in docs/operate/run.md. */
const asJson = ({ fix, ...finding }: Finding, failures: Failures) => {
  const notFixed = fix && failures.get(fix.text);
  return {
    ...finding,
    fixable: fix !== undefined,
    ...(fix === undefined ? {} : { fix: fix.text }),
    ...(notFixed === undefined ? {} : { notFixed }),
  };
};

/** One after the other; one that fails does not keep the others from being done. */
async function applyFixes(
  terminal: Terminal,
  fixable: readonly Fixable[],
  yes: boolean,
): Promise<Failures> {
  const failures = new Map<string, string>();
  terminal.note(t`These can be fixed now:`);
  for (const { check, fix } of fixable)
    terminal.note(`  ${check.padEnd(CHECK_COLUMNS)} ${fix.text}`);
  await confirmOrStop(terminal, t`Fix them?`, yes);
  for (const { check, fix } of fixable) {
    try {
      await fix.run();
      terminal.note(
        `${terminal.style('green', SIGNS.ok)} ${check.padEnd(CHECK_COLUMNS)} ${t`fixed`}`,
      );
    } catch (error) {
      const [reason = ''] = explainError(error, terminal.env, terminal.home);
      const why = reason.replace(/^nanobot: /, '');
      failures.set(fix.text, why);
      const text = t`not fixed: ${why}`;
      terminal.note(`${terminal.style('red', SIGNS.fail)} ${check.padEnd(CHECK_COLUMNS)} ${text}`);
    }
  }
  return failures;
}

function printFinding(terminal: Terminal, { check, level, text, remedy }: Finding) {
  const sign = terminal.style(COLORS[level], SIGNS[level]);
  terminal.tell(`${sign} ${check.padEnd(CHECK_COLUMNS)} ${text}`);
  if (remedy !== undefined) terminal.tell(`${' '.repeat(CHECK_COLUMNS + 3)}${remedy}`);
}
