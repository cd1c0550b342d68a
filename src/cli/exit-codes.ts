// What this program's exit codes mean, in one table: scripts rely on it, and `nanobot --help` prints
// it.

import { ConfigError, NanobotError, ProviderError } from '../kernel/message/errors.ts';

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  configInvalid: 3,
  homeHeld: 4,
  notFound: 6,
  modelFailed: 7,
  warnings: 8,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: readonly (readonly [code: ExitCode, meaning: string])[] = [
  [EXIT.ok, 'all went well'],
  [EXIT.failure, 'something failed; the last line on stderr says what'],
  [EXIT.usage, 'the command line is wrong'],
  [EXIT.configInvalid, 'the configuration has problems, each named on stderr'],
  [EXIT.homeHeld, 'another gateway holds this home'],
  [EXIT.notFound, 'what the command was asked for is not there'],
  [EXIT.modelFailed, 'the model gave no answer'],
  [EXIT.warnings, 'doctor found nothing broken, but something to look at'],
  [EXIT.interrupted, 'a person stopped it, by Ctrl+C or by saying no'],
];

/** Ends a command with an exit code; an empty message says that all is said already. */
export class CommandFailure extends NanobotError {
  override readonly name = 'CommandFailure';
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message = '') {
    super('command_failed', message);
    this.exitCode = exitCode;
  }
}

const NOT_THERE = ['import_not_found', 'skill_unknown', 'job_unknown'];

/** The store's `home_locked` is known by its code, so that this file stays light to import. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandFailure) return error.exitCode;
  if (error instanceof ConfigError) return EXIT.configInvalid;
  if (error instanceof ProviderError) return EXIT.modelFailed;
  if (error instanceof NanobotError && error.code === 'home_locked') return EXIT.homeHeld;
  if (error instanceof NanobotError && NOT_THERE.includes(error.code)) return EXIT.notFound;
  return EXIT.failure;
}
