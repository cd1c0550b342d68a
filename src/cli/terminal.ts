// The terminal a command talks to: data on stdout, everything said about it on stderr.

import { styleText } from 'node:util';
import type { Environment } from '../kernel/config/environment.ts';
import { type Home, homeOf } from '../kernel/config/files/home.ts';
import { type Typed, typedCommands } from '../kernel/typed-command.ts';
import { type Clock, systemClock } from '../lib/time/clock.ts';

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

export interface Terminal {
  readonly env: Environment;
  readonly home: Home;
  readonly clock: Clock;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  /** A line on stdout. */
  print(line: string): void;
  /** A line on stderr, in which commands stand as this person types them. */
  note(line: string): void;
  /** A line on stdout that is no data: like `note`. */
  tell(line: string): void;
  /** Names commands as this person types them. */
  readonly typed: Typed;
  printJson(value: unknown): void;
  /** Plain where stdout is no terminal or NO_COLOR is set. */
  style(style: Style | readonly Style[], text: string): string;
  /** Whether a person sits there who can be asked. */
  readonly interactive: boolean;
}

export function createTerminal(process: NodeJS.Process): Terminal {
  const { stdin, stdout, stderr, env } = process;
  const typed = typedCommands(env, process.argv[1]);
  return {
    env,
    home: homeOf(env),
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

// Rows of text in columns, for people. Control characters of names that strangers chose never reach
// the terminal.

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
