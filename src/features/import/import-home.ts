// Looks into the home of another program: which one it is, what of its configuration becomes ours,
// which of its files are wanted. Reads only; what is done with it is in import-files.ts and the CLI.

import { existsSync } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { isJsonObject, type JsonValue } from '../../kernel/config/json.ts';
import { readRelaxedJson } from '../../kernel/config/relaxed-json.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { PROVIDER_NAMES } from '../../providers/settings.ts';
import { vendorOf } from '../../providers/vendors.ts';
import { importOpenClaw } from './rules/import-openclaw.ts';
import { importPython } from './rules/import-python.ts';
import { type Imported, namesIn, sectionAt, textAt } from './rules/import-settings.ts';

export type ForeignHome = Imported & {
  /** Of the program, for people. */
  readonly program: string;
  readonly workspace: string;
};

const OPENCLAW = 'openclaw.json';
const PYTHON = 'config.json';
const VARIABLE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(["']?)(.*?)\2\s*$/;

/** @throws NanobotError where the folder is the home of neither program */
export async function readForeignHome(folder: string): Promise<ForeignHome> {
  const root = resolve(folder);
  if (existsSync(join(root, OPENCLAW))) return readOpenClaw(root);
  if (existsSync(join(root, PYTHON))) return readPython(root);
  throw new NanobotError(
    'import_not_found',
    `${root} holds neither ${OPENCLAW} (OpenClaw) nor ${PYTHON} (nanobot for Python)`,
  );
}

async function readPython(root: string): Promise<ForeignHome> {
  const config = await readJsonFile(join(root, PYTHON));
  const jobs = await countJobs(join(root, 'cron', 'jobs.json'));
  const imported = importPython(config);
  const written = textAt(sectionAt(config, 'agents', 'defaults'), 'workspace');
  return {
    program: 'nanobot for Python',
    settings: imported.settings,
    left: [...imported.left, ...jobs, SESSIONS],
    workspace: workspaceOf(root, written),
  };
}

async function readOpenClaw(root: string): Promise<ForeignHome> {
  const config = await readJsonFile(join(root, OPENCLAW));
  const imported = importOpenClaw({
    config,
    logins: await logins(root),
    variables: variablesIn((await readText(join(root, '.env'))) ?? ''),
    paired: {
      telegram: await pairedOn(root, 'telegram'),
      whatsapp: await pairedOn(root, 'whatsapp'),
    },
    vendorByVariable: Object.fromEntries(
      PROVIDER_NAMES.flatMap((name) =>
        vendorOf(name).keyVariables.map((variable) => [variable, name] as const),
      ),
    ),
  });
  const jobs = await countJobs(join(root, 'cron', 'jobs.json'));
  const written = textAt(sectionAt(config, 'agents', 'defaults'), 'workspace');
  return {
    program: 'OpenClaw',
    settings: imported.settings,
    left: [...imported.left, ...jobs, SESSIONS],
    workspace: workspaceOf(root, written),
  };
}

const SESSIONS = 'Conversations stay where they are; what was remembered of them is in the memory.';

/** Beside its configuration first: a home that was moved still names the place where it was. */
function workspaceOf(root: string, written: string): string {
  const beside = join(root, 'workspace');
  if (existsSync(beside) || written === '') return beside;
  return resolve(written.replace(/^~(?=\/|$)/, homedir()));
}

async function logins(root: string): Promise<readonly JsonValue[]> {
  const agents = join(root, 'agents');
  const names = await readdir(agents).catch((): string[] => []);
  const texts = await Promise.all(
    names.sort().map((name) => readText(join(agents, name, 'agent', 'auth-profiles.json'))),
  );
  return texts.flatMap((text) => (text === undefined ? [] : [readRelaxedJson(text) ?? {}]));
}

async function pairedOn(root: string, channel: string): Promise<readonly string[]> {
  const names = [`${channel}-allowFrom.json`, `${channel}-default-allowFrom.json`];
  const texts = await Promise.all(names.map((name) => readText(join(root, 'credentials', name))));
  return texts.flatMap((text) => {
    const value = text === undefined ? undefined : readRelaxedJson(text);
    return isJsonObject(value) ? namesIn(value['allowFrom']) : namesIn(value);
  });
}

async function countJobs(path: string): Promise<readonly string[]> {
  const text = await readText(path);
  const value = text === undefined ? undefined : readRelaxedJson(text);
  const jobs = isJsonObject(value) ? value['jobs'] : value;
  const count = Array.isArray(jobs) ? jobs.length : 0;
  if (count === 0) return [];
  return [
    `Scheduled jobs (${count} in ${path}): make them anew with nanobot cron add, or ask for them.`,
  ];
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  const found = text.split('\n').flatMap((line) => {
    const [, name, , value] = VARIABLE.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** @throws NanobotError naming the file that cannot be read */
async function readJsonFile(path: string): Promise<JsonValue> {
  const text = await readText(path);
  const value = text === undefined ? undefined : readRelaxedJson(text);
  if (value !== undefined) return value;
  throw new NanobotError(
    'import_unreadable',
    `${path} cannot be read as JSON. Check it with the program it is from.`,
  );
}

/** Plain files of a sensible size alone. */
async function readText(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size > MAX_BYTES) return undefined;
  return readFile(path, 'utf8');
}
