// Reads the home of another program: identifies the program, its importable settings and its
// workspace files. Its instructions for agents are set aside, because they describe other tools.

import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { WORKSPACE_TEMPLATE } from '../../kernel/config/files/home.ts';
import { isJsonObject, type JsonValue } from '../../kernel/config/json.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { writeAtomic } from '../../lib/files/files.ts';
import { readRelaxedJson } from '../../lib/json/loose-json.ts';
import { t } from '../../lib/texts.ts';
import { PROVIDER_NAMES } from '../../providers/settings.ts';
import { vendorOf } from '../../providers/vendors.ts';
import { importOpenClaw } from './rules/import-openclaw.ts';
import { importPython } from './rules/import-python.ts';
import { type Imported, namesIn, sectionAt, textAt } from './rules/import-settings.ts';

type FileStep = {
  /** Relative to our workspace. */
  readonly path: string;
  readonly how:
    | 'new'
    | 'replaces the unchanged template'
    | 'added to the existing file'
    | 'for you to check';
  readonly content: string;
};

export type FilePlan = {
  readonly steps: readonly FileStep[];
  readonly left: readonly string[];
};

const MAX_BYTES = 1_000_000;
const MEMORY = 'memory/MEMORY.md';
const ASIDE = 'imported';
/** Replace ours where ours are the unchanged templates. */
const PERSONAL = ['SOUL.md', 'IDENTITY.md', 'USER.md'];
/**
 * They describe the other program's tools or would run without approval, so they are only stored
 * for reading.
 */
const FOR_READING = ['AGENTS.md', 'TOOLS.md', 'HEARTBEAT.md', 'memory/HISTORY.md'];
const MEMORIES = ['MEMORY.md', 'memory/MEMORY.md'];
const READ_THEM = t`Imported files count as written by you. Read them: they may contain what other people said to the other program.`;
const DAY = /^\d{4}-\d\d-\d\d\.md$/;

/** Plans the import without writing. Empty once the import was carried out. */
export async function planFiles(from: string, to: string, program: string): Promise<FilePlan> {
  const steps = [
    ...(await personal(from, to)),
    ...(await memory(from, to, program)),
    ...(await days(from, to)),
    ...(await stepsOf(FOR_READING, (path) => asideStep(from, to, path))),
  ];
  const isTrusted = steps.some(({ how }) => how !== 'for you to check');
  const left = [...(await unreadable(from)), ...(await skills(from))];
  return { steps, left: [...(isTrusted ? [READ_THEM] : []), ...left] };
}

export async function carryOut(to: string, steps: readonly FileStep[]): Promise<void> {
  for (const { path, content } of steps) {
    const target = join(to, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await writeAtomic(target, content);
  }
}

async function personal(from: string, to: string): Promise<readonly FileStep[]> {
  return stepsOf(PERSONAL, async (path) => {
    const [theirs, ours] = [await textOf(join(from, path)), await ownText(join(to, path))];
    if (theirs === undefined || theirs === ours) return undefined;
    if (ours === undefined) return { path, how: 'new', content: theirs };
    const isUntouched = ours === (await ownText(join(WORKSPACE_TEMPLATE, path)));
    if (!isUntouched) return asideStep(from, to, path);
    return { path, how: 'replaces the unchanged template', content: theirs };
  });
}

async function memory(from: string, to: string, program: string): Promise<readonly FileStep[]> {
  const found = await Promise.all(MEMORIES.map((path) => textOf(join(from, path))));
  const theirs = found.flatMap((text) => text?.trim() ?? []).join('\n\n');
  const ours = (await ownText(join(to, MEMORY))) ?? '';
  if (theirs === '' || ours.includes(theirs)) return [];
  const isUntouched = ours === ((await ownText(join(WORKSPACE_TEMPLATE, MEMORY))) ?? '');
  if (isUntouched || ours.trim() === '') {
    return [
      {
        path: MEMORY,
        how: ours === '' ? 'new' : 'replaces the unchanged template',
        content: `${theirs}\n`,
      },
    ];
  }
  const content = t`${ours.trimEnd()}\n\n## From ${program}\n\n${theirs}\n`;
  return [{ path: MEMORY, how: 'added to the existing file', content }];
}

async function days(from: string, to: string): Promise<readonly FileStep[]> {
  return stepsOf(await datedFiles(from), async (path) => {
    const [theirs, ours] = [await textOf(join(from, path)), await ownText(join(to, path))];
    if (theirs === undefined || ours?.includes(theirs.trim()) === true) return undefined;
    if (ours === undefined) return { path, how: 'new', content: theirs };
    return {
      path,
      how: 'added to the existing file',
      content: `${ours.trimEnd()}\n\n${theirs.trim()}\n`,
    };
  });
}

async function asideStep(from: string, to: string, path: string): Promise<FileStep | undefined> {
  const theirs = await textOf(join(from, path));
  const target = `${ASIDE}/${path}`;
  if (theirs === undefined || theirs === (await ownText(join(to, target)))) return undefined;
  return { path: target, how: 'for you to check', content: theirs };
}

async function stepsOf(
  paths: readonly string[],
  stepFor: (path: string) => Promise<FileStep | undefined>,
): Promise<readonly FileStep[]> {
  return (await Promise.all(paths.map(stepFor))).flatMap((step) => step ?? []);
}

async function datedFiles(from: string): Promise<readonly string[]> {
  const names = await sortedNames(join(from, 'memory'));
  return names.filter((name) => DAY.test(name)).map((name) => `memory/${name}`);
}

/** Empty where the folder is missing. */
const sortedNames = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch((): string[] => [])).sort();

/** Skills instruct the agent, so each is shown before it is added. */
async function skills(from: string): Promise<readonly string[]> {
  const folder = join(from, 'skills');
  const names = await sortedNames(folder);
  return names
    .filter((name) => existsSync(join(folder, name, 'SKILL.md')))
    .map(
      (name) => t`Skill ${name}: check it, then add it: nanobot skills add ${join(folder, name)}`,
    );
}

/**
 * Reads only plain files up to the size limit; links may lead anywhere. `unreadable` names the
 * others.
 */
async function textOf(path: string): Promise<string | undefined> {
  const text = await readText(path).catch(() => '');
  return text?.trim() === '' ? undefined : text;
}

/** A file of our workspace, which is never overwritten unread. */
async function ownText(path: string): Promise<string | undefined> {
  if (!existsSync(path)) return undefined;
  const text = await readFile(path, 'utf8');
  return text.trim() === '' ? undefined : text;
}

/** The wanted files that cannot be imported, each with the reason. */
async function unreadable(from: string): Promise<readonly string[]> {
  const dated = await datedFiles(from);
  const wanted = [...new Set([...PERSONAL, ...MEMORIES, ...FOR_READING, ...dated])];
  const found = await Promise.all(wanted.map((path) => problemOf(join(from, path))));
  return found.flatMap((problem) => problem ?? []);
}

async function problemOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || found.isDirectory()) return undefined;
  const stays = t`is not imported; copy it by hand if you need it.`;
  if (!found.isFile()) return t`${path} is not a regular file and ${stays}`;
  if (found.size > MAX_BYTES) return t`${path} is larger than 1 MB and ${stays}`;
  return readFile(path).then(
    () => undefined,
    () => t`${path} is not readable and ${stays}`,
  );
}

export type ForeignHome = Imported & {
  /** Display name of the program. */
  readonly program: string;
  readonly workspace: string;
};

/** The programs by the file that marks their homes. */
const PROGRAMS = [
  { file: 'openclaw.json', program: 'OpenClaw', read: readOpenClaw },
  { file: 'config.json', program: t`nanobot for Python`, read: importPython },
];
const VARIABLE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(["']?)(.*?)\2\s*$/;

/** @throws NanobotError where the folder is the home of neither program */
export async function readForeignHome(folder: string): Promise<ForeignHome> {
  const root = resolve(folder);
  const found = PROGRAMS.find(({ file }) => existsSync(join(root, file)));
  if (found === undefined) {
    const names = PROGRAMS.map(({ file, program }) => `${file} (${program})`).join(' nor ');
    throw new NanobotError(
      'import_not_found',
      t`${root} is not a home of another program: it has neither ${names}`,
    );
  }
  const path = join(root, found.file);
  const config = await readJson(path);
  if (config === undefined) {
    const message = t`${path} is not valid JSON. Check it with the other program.`;
    throw new NanobotError('import_unreadable', message);
  }
  const { settings, left } = await found.read(config, root);
  const jobs = await countJobs(join(root, 'cron', 'jobs.json'));
  const written = textAt(sectionAt(config, 'agents', 'defaults'), 'workspace');
  return {
    program: found.program,
    settings,
    left: [...left, ...jobs, SESSIONS],
    workspace: workspaceOf(root, written),
  };
}

async function readOpenClaw(config: JsonValue, root: string): Promise<Imported> {
  return importOpenClaw({
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
}

const SESSIONS = t`Conversations are not imported; the memory has what was remembered of them.`;

/**
 * Prefers the folder beside the configuration: the configuration of a moved home names the old
 * place.
 */
function workspaceOf(root: string, written: string): string {
  const beside = join(root, 'workspace');
  if (existsSync(beside) || written === '') return beside;
  return resolve(written.replace(/^~(?=\/|$)/, homedir()));
}

/** A file that cannot be read counts as empty. */
async function logins(root: string): Promise<readonly JsonValue[]> {
  const agents = join(root, 'agents');
  const paths = (await sortedNames(agents)).map((name) =>
    join(agents, name, 'agent', 'auth-profiles.json'),
  );
  return (await Promise.all(paths.map(readJson))).map((login) => login ?? {});
}

async function pairedOn(root: string, channel: string): Promise<readonly string[]> {
  const names = [`${channel}-allowFrom.json`, `${channel}-default-allowFrom.json`];
  const values = await Promise.all(names.map((name) => readJson(join(root, 'credentials', name))));
  return values.flatMap((value) => namesIn(isJsonObject(value) ? value['allowFrom'] : value));
}

async function countJobs(path: string): Promise<readonly string[]> {
  const value = await readJson(path);
  const jobs = isJsonObject(value) ? value['jobs'] : value;
  const count = Array.isArray(jobs) ? jobs.length : 0;
  if (count === 0) return [];
  return [
    t`Scheduled jobs (${count} in ${path}): create them again with nanobot cron add, or ask the agent to.`,
  ];
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  const found = text.split('\n').flatMap((line) => {
    const [, name, , value] = VARIABLE.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}

/** Undefined where the file is missing or is not JSON. */
async function readJson(path: string): Promise<JsonValue | undefined> {
  const text = await readText(path);
  return text === undefined ? undefined : (readRelaxedJson(text) as JsonValue | undefined);
}

/** Reads only plain files up to the size limit. */
async function readText(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size > MAX_BYTES) return undefined;
  return readFile(path, 'utf8');
}
