// An error in words for the person at the terminal. A stack only where NANOBOT_DEBUG asks for it.

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Home } from '../app/home.ts';
import type { Environment } from '../core/environment.ts';
import { ConfigError, type ConfigProblem, NanobotError, ProviderError } from '../core/errors.ts';
import { isPythonConfig } from '../core/foreign-config.ts';
import { HomeLockedError } from '../store/store.ts';
import { explainSystemError } from './explain-system-error.ts';

export function explainError(error: unknown, env: Environment, home: Home): readonly string[] {
  const debug = (env['NANOBOT_DEBUG'] ?? '') !== '';
  if (debug && error instanceof Error) return [error.stack ?? error.message];
  if (error instanceof ConfigError) return explainConfigError(error, home);
  if (error instanceof HomeLockedError) return [explainLock(error, home)];
  // What the person in the chat would read names the vendor and the remedy.
  if (error instanceof ProviderError) return [`nanobot: ${error.userText ?? error.message}`];
  if (error instanceof NanobotError)
    return error.message === '' ? [] : [`nanobot: ${error.message}`];
  const refused = explainSystemError(error, home);
  if (refused !== undefined) return [`nanobot: ${refused}`];
  const message = error instanceof Error ? error.message : String(error);
  return [`nanobot: ${oneLine(message)} (NANOBOT_DEBUG=1 shows where)`];
}

function explainConfigError(error: ConfigError, home: Home): readonly string[] {
  if (error.problems.length === 0) return [`nanobot: ${error.message}`];
  if (isPythonConfig(error.problems.map(({ path }) => path))) {
    return [`nanobot: ${home.config} is that of another program.`, otherProgram(home)];
  }
  const count = error.problems.length === 1 ? 'a problem' : `${error.problems.length} problems`;
  return [
    `nanobot: the configuration has ${count}:`,
    ...error.problems.map(problemLine),
    ...(existsSync(home.lastGoodConfig)
      ? [`The last configuration that loaded is ${home.lastGoodConfig}.`]
      : []),
  ];
}

/** Its home has the same name, so whoever comes from there meets this first. */
export function otherProgram({ root }: Home): string {
  return `This is the home of nanobot for Python. Keep it: mv ${root} ${root}-python, then nanobot import ${root}-python`;
}

function explainLock({ holder }: HomeLockedError, home: Home): string {
  const choices = 'Use that one, stop it first, or choose another home with NANOBOT_HOME.';
  return `nanobot: ${home.root} is held by ${holderText(holder)}, which goes on undisturbed. ${choices}`;
}

/** Also names the machine or container where that is another one. */
export function holderText({ pid, host, startedAt }: HomeLockedError['holder']): string {
  const who = pid === undefined ? 'another process' : `process ${pid}`;
  const where = host === undefined || host === hostname() ? '' : ` on ${host}`;
  return `${who}${where}${startedAt === undefined ? '' : ` since ${startedAt}`}`;
}

export function problemLine({ path, problem, remedy, line, column }: ConfigProblem): string {
  const place = line === undefined ? '' : ` (line ${line}, column ${column})`;
  return `  ${path === '' ? 'config.json' : path}${place}: ${problem}. ${remedy}`;
}

function oneLine(text: string): string {
  return text.split('\n', 1).join('').trim();
}
