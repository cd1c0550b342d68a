// Reads the secrets that are stored outside the configuration: in the environment, in a file, or in
// the output of a command. Problems are reported without any of the text that was read.

import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { systemCode } from '../../../lib/files/files.ts';
import { environmentOf, isContained, isOnReadOnlyMount } from '../../../lib/process-group.ts';
import { t } from '../../../lib/texts.ts';
import { type Environment, expandEnvironment, withVariables } from '../environment.ts';
import { isJsonObject, type JsonValue, readJson } from '../json.ts';
import { migrateConfig } from '../migration.ts';
import { type FoundSecret, type FoundSecrets, placedSecrets, type SecretRef } from '../secrets.ts';
import type { Home } from './home.ts';

const COMMAND_TIMEOUT_MS = 10_000;
const MAX_SECRET_BYTES = 65_536;
const OTHERS = 0o077;
const ALL_OTHERS = 0o007;
const OTHERS_WRITE = 0o022;
const SECRETS_FOLDERS = ['/run/secrets/', '/var/run/secrets/'];
/**
 * What a program needs to run, and to reach a keyring or agent of the session; nothing else of our
 * environment.
 */
const PASSED_ON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TMPDIR', 'SystemRoot'],
  ...['DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK', 'GNUPGHOME'],
  'PASSWORD_STORE_DIR',
];

/** @throws ConfigError if the text is no JSON */
export function findSecretsIn(text: string, env: Environment, home: Home): Promise<FoundSecrets> {
  return findSecrets(migrateConfig(readJson(text).value).raw, env, home);
}

/** One after the other: a command may ask a person. */
export async function findSecrets(
  raw: JsonValue,
  env: Environment,
  home: Home,
): Promise<FoundSecrets> {
  const found = new Map<string, FoundSecret>();
  const expanded = expandEnvironment(raw, env).value;
  const whole = isJsonObject(expanded) ? withVariables(expanded, env) : expanded;
  for (const { path, ref } of placedSecrets(whole)) {
    found.set(path, await look(ref, env, home));
  }
  return found;
}

async function look(ref: SecretRef, env: Environment, home: Home): Promise<FoundSecret> {
  if ('env' in ref) return fromEnvironment(ref.env, env);
  if ('command' in ref) return fromCommand(ref.command, env, home);
  return fromFile(resolve(home.root, ref.file.replace(/^~(?=$|[/\\])/, homedir())), env);
}

const missing = (problem: string, remedy: string): FoundSecret => ({
  kind: 'missing',
  problem,
  remedy,
});

function fromEnvironment(name: string, env: Environment): FoundSecret {
  const value = env[name] ?? '';
  if (value !== '') return { kind: 'found', value };
  return missing(t`the environment variable ${name} is not set`, t`Set ${name}.`);
}

async function fromFile(path: string, env: Environment): Promise<FoundSecret> {
  const file = await open(path, 'r').catch((error) => String(systemCode(error) ?? 'unknown'));
  if (typeof file === 'string') {
    return missing(
      t`cannot read ${path} (${file})`,
      t`Check that the file exists and this user may read it.`,
    );
  }
  try {
    const info = await file.stat();
    if (!info.isFile()) return missing(t`${path} is not a file`, t`Enter the path of a file.`);
    const isExposed = process.platform !== 'win32' && (info.mode & OTHERS) !== 0;
    if (isExposed && !(isContained(env) && (await isContainerSecret(path, info.mode)))) {
      return missing(t`other users can read ${path}`, await howToHide(path, info.uid));
    }
    if (info.size > MAX_SECRET_BYTES) return missing(t`${path} is too large`, TOO_LARGE);
    return trimmed(await file.readFile('utf8'), path);
  } finally {
    await file.close();
  }
}

/** As Docker and Kubernetes mount secrets: for a group, or read-only. */
async function isContainerSecret(path: string, mode: number): Promise<boolean> {
  if ((mode & ALL_OTHERS) === 0) return true;
  if ((mode & OTHERS_WRITE) !== 0) return false;
  return SECRETS_FOLDERS.some((folder) => path.startsWith(folder)) || isOnReadOnlyMount(path);
}

async function howToHide(path: string, owner: number): Promise<string> {
  const isOurs = owner === process.getuid?.() || process.getuid?.() === 0;
  if (isOurs && !(await isOnReadOnlyMount(path))) return t`Run: chmod 600 ${path}`;
  return t`This user may not change that. Mount the file with mode 0400 for this user, or use a private copy.`;
}

const TOO_LARGE = t`A secret may have up to 64 kB.`;

function trimmed(text: string, source: string): FoundSecret {
  const value = text.trim();
  if (value !== '') return { kind: 'found', value };
  return missing(t`${source} is empty`, t`Add the secret there.`);
}

/** Without a shell; its stderr is not shown, because it may contain the secret. */
function fromCommand(
  [program, ...args]: readonly [string, ...string[]],
  env: Environment,
  home: Home,
): Promise<FoundSecret> {
  const options = {
    cwd: home.root,
    env: environmentOf(PASSED_ON, env),
    timeout: COMMAND_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_SECRET_BYTES,
    windowsHide: true,
    encoding: 'utf8',
  } as const;
  return new Promise((found) => {
    const child = execFile(program, args, options, (error, stdout) => {
      if (error === null) return found(trimmed(stdout, t`the output of ${program}`));
      found(
        missing(
          t`the command ${program} ${commandFailure(error)}`,
          t`Run it in a terminal to see why.`,
        ),
      );
    });
    child.stdin?.end();
  });
}

function commandFailure(error: Error & { code?: unknown; killed?: boolean }): string {
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return t`printed more than 64 kB`;
  if (error.killed === true) return t`did not finish within ${COMMAND_TIMEOUT_MS / 1000} s`;
  if (typeof error.code === 'number') return t`ended with exit code ${error.code}`;
  return t`could not be run (${String(error.code ?? 'unknown')})`;
}
