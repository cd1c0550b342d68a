// An error in words for the person at the terminal. A stack only where NANOBOT_DEBUG asks for it.

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { HomeLockedError } from '../kernel/bus/store/store.ts';
import { isPythonConfig } from '../kernel/config/check.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { Home } from '../kernel/config/files/home.ts';
import {
  ConfigError,
  type ConfigProblem,
  NanobotError,
  ProviderError,
} from '../kernel/message/errors.ts';

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

// What the operating system refused, in words for the person at the terminal, with what to do.

const SAY: Readonly<Record<string, (path: string) => string>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: (path) => `${path} lies on a disk that can only be read. ${ELSEWHERE}`,
  ENOTDIR: (path) => `${path} cannot be made: part of its path is a file. ${ELSEWHERE}`,
  EEXIST: (path) => `${path} is a file, and a folder is needed there. ${ELSEWHERE}`,
  EISDIR: (path) => `${path} is a folder, and a file is needed there. Move it away.`,
};
const ELSEWHERE = 'Choose another home with NANOBOT_HOME.';
const FULL = ['ENOSPC', 'EDQUOT'];

/** Undefined where the error is none of the file system's, or one that only its own words describe. */
export function explainSystemError(error: unknown, home: Home): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = String(error.code);
  if (FULL.includes(code)) {
    return `no room is left on the disk of ${home.root}. Make room and try again; what was kept is still there.`;
  }
  const path = 'path' in error && typeof error.path === 'string' ? error.path : undefined;
  return path === undefined ? undefined : SAY[code]?.(path);
}

function forbidden(path: string): string {
  return `${path} may not be read or written by this user. Give it to them (chown, chmod), or choose another home with NANOBOT_HOME.`;
}
