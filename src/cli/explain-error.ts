// An error in words for the person at the terminal. A stack only where NANOBOT_DEBUG asks for it.

import type { Environment } from '../core/environment.ts';
import { ConfigError, type ConfigProblem, NanobotError } from '../core/errors.ts';

export function explainError(error: unknown, env: Environment): readonly string[] {
  const debug = (env['NANOBOT_DEBUG'] ?? '') !== '';
  if (debug && error instanceof Error) return [error.stack ?? error.message];
  if (error instanceof ConfigError) return explainConfigError(error);
  if (error instanceof NanobotError)
    return error.message === '' ? [] : [`nanobot: ${error.message}`];
  const message = error instanceof Error ? error.message : String(error);
  return [`nanobot: ${oneLine(message)} (NANOBOT_DEBUG=1 shows where)`];
}

export function explainConfigError(error: ConfigError): readonly string[] {
  if (error.problems.length === 0) return [`nanobot: ${error.message}`];
  const count = error.problems.length === 1 ? 'a problem' : `${error.problems.length} problems`;
  return [`nanobot: the configuration has ${count}:`, ...error.problems.map(problemLine)];
}

export function problemLine({ path, problem, remedy, line, column }: ConfigProblem): string {
  const place = line === undefined ? '' : ` (line ${line}, column ${column})`;
  return `  ${path === '' ? 'config.json' : path}${place}: ${problem}. ${remedy}`;
}

function oneLine(text: string): string {
  return text.split('\n', 1).join('').trim();
}
