// Turns errors into text for the terminal. The stack is shown only with NANOBOT_DEBUG.

import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';
import { HomeLockedError } from '../kernel/bus/store/store.ts';
import { isPythonConfig } from '../kernel/config/check.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { Home } from '../kernel/config/files/home.ts';
import { problemLine } from '../kernel/config/issues.ts';
import { ConfigError, NanobotError, ProviderError } from '../kernel/message/errors.ts';
import { parseJson } from '../lib/json/json.ts';
import { msgid, ngettext, t } from '../lib/texts.ts';

export function explainError(error: unknown, env: Environment, home: Home): readonly string[] {
  const debug = (env['NANOBOT_DEBUG'] ?? '') !== '';
  if (debug && error instanceof Error) return [error.stack ?? error.message];
  if (error instanceof ConfigError) return explainConfigError(error, home);
  if (error instanceof HomeLockedError) return [explainLock(error, home)];
  // The text for a chat names the vendor and the remedy.
  if (error instanceof ProviderError) return [t`nanobot: ${error.userText ?? error.message}`];
  if (error instanceof NanobotError) {
    const { code, message } = error;
    if (message === '') return [];
    return [t`nanobot: ${message}`, ...(code === 'store_newer' ? newerVersion(home) : [])];
  }
  const refused = explainSystemError(error, home);
  if (refused !== undefined) return [t`nanobot: ${refused}`];
  const message = error instanceof Error ? error.message : String(error);
  return [t`nanobot: ${firstLine(message)} (set NANOBOT_DEBUG=1 to see where)`];
}

/** Of the last update of a home that is too new for this program. */
const updatedShape = z.object({
  from: z.string(),
  to: z.string(),
  backup: z.object({ place: z.string(), id: z.string() }),
});

function newerVersion({ update }: Home): readonly string[] {
  const written = existsSync(update) ? parseJson(readFileSync(update, 'utf8')) : undefined;
  const { data } = updatedShape.safeParse(written);
  if (data === undefined) return [];
  return [t`nanobot ${data.to} was installed here after ${data.from}. ${wayBack(data)}`];
}

/** To a version that cannot read the home of now. */
export function wayBack({
  from,
  backup: { place, id },
}: Omit<z.infer<typeof updatedShape>, 'to'>): string {
  return t`The way back loses what came since: stop the gateway, then nanobot backup restore ${id} --from ${place} --force, then nanobot update --to ${from}`;
}

function explainConfigError(error: ConfigError, home: Home): readonly string[] {
  if (error.problems.length === 0) return [t`nanobot: ${error.message}`];
  if (isPythonConfig(error.problems.map(({ path }) => path))) {
    return [t`nanobot: ${home.config} belongs to another program.`, otherProgram(home)];
  }
  const { length } = error.problems;
  return [
    ngettext(
      msgid`nanobot: the configuration has ${length} problem:`,
      `nanobot: the configuration has ${length} problems:`,
      length,
    ),
    ...error.problems.map((problem) => `  ${problemLine(problem)}`),
    ...(existsSync(home.lastGoodConfig)
      ? [t`The last valid configuration is ${home.lastGoodConfig}.`]
      : []),
  ];
}

/** That program uses the same home folder, so its users see this message first. */
export function otherProgram({ root }: Home): string {
  return t`This is the home of nanobot for Python. Move it, then import it: mv ${root} ${root}-python; nanobot import ${root}-python`;
}

function explainLock({ holder }: HomeLockedError, home: Home): string {
  if (holder['service'] !== undefined) {
    return t`nanobot: the service ${holder['service']} already uses ${home.root} (${holderText(holder)}). To see what it does: nanobot service logs. To stop it: nanobot service stop`;
  }
  const choices = t`Use that one, stop it, or set NANOBOT_HOME to another folder.`;
  return t`nanobot: ${holderText(holder)} already uses ${home.root}. ${choices}`;
}

/** Also names the machine or container where that is another one. */
export function holderText({ pid, host, startedAt }: HomeLockedError['holder']): string {
  const who = pid === undefined ? t`another process` : t`process ${pid}`;
  const where = host === undefined || host === hostname() ? '' : t` on ${host}`;
  return `${who}${where}${startedAt === undefined ? '' : t` since ${startedAt}`}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1).join('').trim();
}

// File system errors as text, with what to do.

const SAY: Readonly<Record<string, (path: string, elsewhere: string) => string>> = {
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: (path, elsewhere) => t`${path} is on a read-only disk. ${elsewhere}`,
  ENOTDIR: (path, elsewhere) =>
    t`cannot create ${path}: part of its path is no folder. ${elsewhere}`,
  EEXIST: (path, elsewhere) => t`${path} is a file, or a link to nothing. ${elsewhere}`,
  EISDIR: (path) => t`${path} is a folder, not a file. Move it away.`,
};
const FULL = ['ENOSPC', 'EDQUOT'];

/** Undefined for errors that are not of the file system, and for codes without a text here. */
export function explainSystemError(error: unknown, home: Home): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = String(error.code);
  if (FULL.includes(code)) {
    return t`the disk of ${home.root} is full. Free disk space and try again; stored data is intact.`;
  }
  const path = 'path' in error && typeof error.path === 'string' ? error.path : undefined;
  if (code === 'EIO') {
    return t`the disk of ${path ?? home.root} failed (${firstLine(error.message)}). Check the disk, then try again.`;
  }
  if (path === undefined) return undefined;
  const isOfHome = path.startsWith(home.root) || home.root.startsWith(path);
  const setting = isOfHome ? 'NANOBOT_HOME' : 'agents.defaults.workspace';
  return SAY[code]?.(path, t`Set ${setting} to another folder.`);
}

function forbidden(path: string, elsewhere: string): string {
  return t`this user may not read or write ${path}. Change its owner or mode (chown, chmod). ${elsewhere}`;
}
