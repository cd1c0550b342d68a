// The base of all commands: exit codes, output for people and as JSON, confirmation, access to the
// store, and stop signals.

import { constants } from 'node:os';
import { styleText } from 'node:util';
import type { Environment } from '../kernel/config/environment.ts';
import { type Home, homeOf, withSharedFiles } from '../kernel/config/files/home.ts';
import type { OpenedState } from '../kernel/home-state.ts';
import { ConfigError, NanobotError, ProviderError } from '../kernel/message/errors.ts';
import { type Typed, typedCommands } from '../kernel/typed-command.ts';
import { t } from '../lib/texts.ts';
import { type Clock, systemClock } from '../lib/time/clock.ts';

const CODES = {
  ok: [0, 'success'],
  failure: [1, t`failed; the last line on stderr says why`],
  usage: [2, t`wrong command line`],
  configInvalid: [3, t`invalid configuration; stderr lists the problems`],
  homeHeld: [4, t`another gateway uses this home, here or where it moved`],
  notFound: [6, t`not found`],
  modelFailed: [7, t`the model did not answer`],
  warnings: [8, t`doctor found warnings but no errors`],
  interrupted: [130, t`cancelled by Ctrl+C or by answering no`],
} as const;

type ExitCode = (typeof CODES)[keyof typeof CODES][0];

export const EXIT_MEANINGS = Object.values(CODES);
export const EXIT = Object.fromEntries(
  Object.entries(CODES).map(([name, [code]]) => [name, code]),
) as { readonly [Name in keyof typeof CODES]: ExitCode };

/** Ends a command with an exit code; with an empty message nothing more is printed. */
export class CommandFailure extends NanobotError {
  override readonly name = 'CommandFailure';
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message = '') {
    super('command_failed', message);
    this.exitCode = exitCode;
  }
}

const HELD = ['home_locked', 'home_moved'];
const NOT_THERE = [
  'import_not_found',
  'skill_unknown',
  'job_unknown',
  'tool_server_unknown',
  'channel_unknown',
];
const WRONG_VALUE = ['invalid_setting'];

/** Checks errors of the store by their code, so that this file stays cheap to import. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandFailure) return error.exitCode;
  if (error instanceof ConfigError) return EXIT.configInvalid;
  if (error instanceof ProviderError) return EXIT.modelFailed;
  if (error instanceof NanobotError && HELD.includes(error.code)) return EXIT.homeHeld;
  if (error instanceof NanobotError && NOT_THERE.includes(error.code)) return EXIT.notFound;
  if (error instanceof NanobotError && WRONG_VALUE.includes(error.code)) return EXIT.usage;
  return EXIT.failure;
}

// The terminal of a command: data on stdout, messages about it on stderr.

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

export interface Terminal {
  readonly env: Environment;
  readonly home: Home;
  readonly clock: Clock;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  /** A line on stdout. */
  print(line: string): void;
  /** A line on stderr; rewrites commands in it to the form that this person types. */
  note(line: string): void;
  /** A line on stdout that is no data; rewritten like `note`. */
  tell(line: string): void;
  /** Rewrites commands to the form that this person types. */
  readonly typed: Typed;
  printJson(value: unknown): void;
  /** Unstyled where stdout is no terminal or NO_COLOR is set. */
  style(style: Style | readonly Style[], text: string): string;
  /** Whether a person can answer questions. */
  readonly interactive: boolean;
}

export function createTerminal(process: NodeJS.Process): Terminal {
  const { stdin, stdout, stderr, env } = process;
  const typed = typedCommands(env, process.argv[1]);
  return {
    env,
    home: withSharedFiles(homeOf(env), env),
    clock: systemClock,
    input: stdin,
    output: stdout,
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${typed(line)}\n`),
    tell: (line) => void stdout.write(`${typed(line)}\n`),
    typed,
    printJson: (value) => void stdout.write(`${JSON.stringify(value, undefined, 2)}\n`),
    style: (style, text) =>
      styleText(typeof style === 'string' ? style : [...style], text, { stream: stdout }),
    interactive: stdin.isTTY === true && stdout.isTTY === true,
  };
}

// Formats rows as columns. Control characters in names of unknown senders never reach the terminal.

const GAP = '  ';

export function textTable(rows: readonly (readonly string[])[]): readonly string[] {
  const clean = rows.map((row) => row.map(printable));
  const widths = clean.reduce<readonly number[]>(
    (known, row) => row.map((cell, column) => Math.max(cell.length, known[column] ?? 0)),
    [],
  );
  return clean.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** Line ends and other control characters become spaces. */
export function printable(text: string): string {
  return text.replace(/\p{C}+/gu, ' ');
}

// Asks before something is destroyed.

/** @throws CommandFailure where the person answers no, or there is no person */
export async function confirmOrStop(terminal: Terminal, question: string, yes: boolean) {
  if (yes) return;
  if (!terminal.interactive) {
    throw new CommandFailure(EXIT.usage, t`${question} To confirm in a script, add --yes.`);
  }
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({ message: question, initialValue: false });
  if (answer !== true) throw new CommandFailure(EXIT.interrupted, t`Cancelled; nothing changed.`);
}

// Opens the home's store for a command and closes it afterwards.

/** @throws CommandFailure where no gateway has ever run in this home */
export async function withState<Result>(
  terminal: Terminal,
  work: (state: OpenedState) => Promise<Result>,
): Promise<Result> {
  const { hasState, withOpenState } = await import('../kernel/home-state.ts');
  if (!(await hasState(terminal.home))) {
    const message = t`there is no data in ${terminal.home.root} yet; start the gateway once: nanobot gateway`;
    throw new CommandFailure(EXIT.notFound, message);
  }
  return withOpenState(terminal.home, terminal.clock, work);
}

// Ctrl+C and SIGTERM: the first asks for a graceful stop, the second exits at once.

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const FORCED_EXIT_BASE = 128;

/** Runs the work with a signal that the first Ctrl+C or SIGTERM aborts. */
export async function untilStopped<Result>(
  onFirst: () => void,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const handle = (name: (typeof SIGNALS)[number]) => {
    if (controller.signal.aborted) process.exit(FORCED_EXIT_BASE + constants.signals[name]);
    onFirst();
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, handle);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, handle);
  }
}
