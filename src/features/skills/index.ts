// Lists and reads the skills: folders of the workspace before the shipped ones. A file is read
// again only when its stamp changed; links are not followed.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SKILLS_FOLDER } from '../../agent/rules/prompt.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { SHIPPED_SKILLS } from '../../kernel/config/files/home.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { RecentMap } from '../../lib/async.ts';
import { fileStamp, isOnPath } from '../../lib/files/files.ts';
import { createGuardedFiles, type GuardedFiles } from '../../lib/files/guarded-files.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { parseYaml, YamlError } from '../../lib/yaml.ts';
import { chosenSkills, createSkillChoices } from './choices.ts';
import {
  readManifest,
  type SkillManifest,
  type SkillNeeds,
  splitFrontMatter,
} from './rules/skill.ts';
import {
  createSkillPinRows,
  listSkillFiles,
  type Skill,
  SkillError,
  type SkillFile,
  type SkillPin,
  type SkillPinRows,
  type Skills,
  sha256,
  skillsCommands,
} from './skills.ts';

export { createReadSkill, type Skills } from './skills.ts';

export type CatalogDeps = {
  readonly files: GuardedFiles;
  readonly pins: SkillPinRows;
  readonly needs: NeedsCheck;
  /** Contains a folder for each skill of the workspace; evaluated at each turn. */
  readonly workspace: () => string;
  /** Contains a folder for each shipped skill. */
  readonly shipped: string;
};

export const SKILL_FILE = 'SKILL.md';
/** Per workspace; a folder with more entries is not a folder of skills. */
const MAX_SKILLS = 1000;
const MAX_SKILL_BYTES = 262_144;

type Origin = Skill['origin'];

/** The result of reading SKILL.md. */
type Read =
  | {
      readonly kind: 'valid';
      readonly manifest: SkillManifest;
      readonly body: string;
      readonly hash: string;
    }
  | { readonly kind: 'broken'; readonly problem: string };

type FoundPins = {
  readonly pins: ReadonlyMap<string, SkillPin>;
  /** The record cannot be read. */
  readonly problem?: string;
};

type Entry = { readonly name: string; readonly origin: Origin; readonly root: string };

export const createSkillCatalog = (deps: CatalogDeps): Skills => new SkillCatalog(deps);

class SkillCatalog implements Skills {
  readonly #deps: CatalogDeps;
  /** The program's own do not change while it runs. */
  #shipped: readonly string[] | undefined;
  readonly #cache = new Map<string, { readonly stamp: string; readonly read: Read }>();

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
  }

  async list(): Promise<readonly Skill[]> {
    const [found, entries] = [await this.#pins(), this.#entries()];
    return Promise.all(
      entries.slice(0, MAX_SKILLS).map(async (entry) => {
        const skill = await this.#describe(entry, pinOf(entry, found.pins));
        const { problem } = found;
        if (problem === undefined || entry.origin === 'shipped') return skill;
        return { ...skill, state: { kind: 'broken', problem } };
      }),
    );
  }

  /**
   * Without the record nothing tells which skills were added from elsewhere, so only the shipped
   * ones are used.
   */
  async #pins(): Promise<FoundPins> {
    try {
      return { pins: await this.#deps.pins.all() };
    } catch (error) {
      if (!(error instanceof NanobotError)) throw error;
      return { pins: new Map(), problem: error.message };
    }
  }

  async read(name: string, file: string = SKILL_FILE): Promise<SkillFile> {
    const entries = this.#entries();
    const entry = entries.find((one) => one.name === name);
    if (entry === undefined) {
      const names = entries.map((one) => one.name).join(', ') || 'none';
      throw new SkillError('unknown', t`there is no skill "${name}"; available: ${names}`);
    }
    const { pins, problem } = await this.#pins();
    if (problem !== undefined && entry.origin === 'workspace') {
      throw new SkillError('not_ready', problem);
    }
    const pin = pinOf(entry, pins);
    const { state } = await this.#describe(entry, pin);
    if (state.kind === 'broken') throw new SkillError('not_ready', state.problem);
    if (state.kind === 'changed') throw changed(name, SKILL_FILE);
    const others = await listSkillFiles(this.#deps.files, entry.root, name);
    const all = others.filter((path) => path !== file);
    if (file === SKILL_FILE) {
      const read = await this.#load(entry);
      if (read.kind === 'broken') throw new SkillError('not_ready', read.problem);
      return { path: file, text: read.body, others: all };
    }
    // Another notation of a path could leave the skill or bypass the recorded hash of a file.
    if (!others.includes(file)) throw new SkillError('unknown', missingFile(name, file, all));
    const bytes = await this.#bytes(entry, file);
    if (pin !== undefined && pin.files[file] !== sha256(bytes)) throw changed(name, file);
    return { path: file, text: bytes.toString('utf8'), others: all };
  }

  /** By name; a skill of the workspace before a shipped one of the same name. */
  #entries(): readonly Entry[] {
    const { shipped, workspace } = this.#deps;
    const byName = new Map<string, Entry>();
    this.#shipped ??= foldersIn(shipped);
    for (const name of this.#shipped) {
      byName.set(name, { name, origin: 'shipped', root: shipped });
    }
    for (const name of foldersIn(workspace())) {
      byName.set(name, { name, origin: 'workspace', root: workspace() });
    }
    return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async #describe(entry: Entry, pin: SkillPin | undefined): Promise<Skill> {
    const { name, origin } = entry;
    const read = await this.#load(entry);
    const known = { name, origin, ...(pin === undefined ? {} : { source: pin.source }) };
    if (read.kind === 'broken') {
      const { problem } = read;
      return { ...known, description: '', isAlways: false, state: { kind: 'broken', problem } };
    }
    const { description, isAlways, needs } = read.manifest;
    const described = { ...known, description, isAlways };
    if (pin !== undefined && pin.files[SKILL_FILE] !== read.hash) {
      return { ...described, state: { kind: 'changed' } };
    }
    const missing = await this.#deps.needs.missing(needs);
    if (missing.length === 0) return { ...described, state: { kind: 'ready' } };
    return { ...described, state: { kind: 'lacking', missing } };
  }

  async #load(entry: Entry): Promise<Read> {
    const path = join(entry.root, entry.name, SKILL_FILE);
    const cached = this.#cache.get(path);
    if (entry.origin === 'shipped' && cached !== undefined) return cached.read;
    const stamp = fileStamp(path);
    if (stamp === undefined)
      return { kind: 'broken', problem: t`${entry.name} has no ${SKILL_FILE}` };
    if (cached?.stamp === stamp) return cached.read;
    const read = await this.#parse(entry);
    if (this.#cache.size >= MAX_SKILLS * 2) this.#cache.clear();
    this.#cache.set(path, { stamp, read });
    return read;
  }

  async #parse(entry: Entry): Promise<Read> {
    try {
      return await readSkillFile(entry.name, await this.#bytes(entry, SKILL_FILE));
    } catch (error) {
      return { kind: 'broken', problem: error instanceof Error ? error.message : t`not readable` };
    }
  }

  #bytes({ root, name }: Entry, file: string): Promise<Buffer> {
    return this.#deps.files.read(root, `${name}/${file}`, { maxBytes: MAX_SKILL_BYTES });
  }
}

/** Validates SKILL.md and returns what would be offered. */
export async function readSkillFile(
  folder: string,
  bytes: Uint8Array,
): Promise<Read & { readonly warnings?: readonly string[] }> {
  const split = splitFrontMatter(Buffer.from(bytes).toString('utf8'));
  if (split === undefined) {
    const problem = t`${SKILL_FILE} does not begin with front matter: a line "---", "description: ...", "---"`;
    return { kind: 'broken', problem };
  }
  try {
    const found = readManifest(await parseYaml(split.header), folder);
    if (found.kind === 'invalid') return { kind: 'broken', problem: found.problem };
    const { manifest, warnings } = found;
    return { kind: 'valid', manifest, body: split.body, hash: sha256(bytes), warnings };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return { kind: 'broken', problem: t`the front matter is not valid YAML: ${error.message}` };
  }
}

const changed = (name: string, file: string) =>
  new SkillError(
    'changed',
    t`${file} of the skill ${name} has changed since it was added; the owner reviews it and runs: nanobot skills accept ${name}`,
  );

const missingFile = (name: string, file: string, others: readonly string[]) =>
  t`the skill ${name} has no file ${JSON.stringify(file)}; available: ${others.join(', ') || 'none'}`;

const pinOf = ({ name, origin }: Entry, pins: ReadonlyMap<string, SkillPin>) =>
  origin === 'workspace' ? pins.get(name) : undefined;

/** Runs at every turn; synchronous, like file stamps, to stay off the thread pool. */
function foldersIn(path: string): readonly string[] {
  const isShown = (name: string) => !name.startsWith('.');
  // An error for a missing folder costs more than the look.
  if (!existsSync(path)) return [];
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && isShown(entry.name))
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

// Whether the requirements of a skill are met: programs on the path, environment variables,
// operating system.

/** A newly installed program is noticed after at most this time. */
const REMEMBERED_MS = 30_000;
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]*$/;
const MAX_REMEMBERED = 500;

type NeedsCheck = ReturnType<typeof createNeedsCheck>;

export function createNeedsCheck(
  env: Environment,
  clock: Pick<Clock, 'monotonic'>,
  platform: string = process.platform,
) {
  const found = new RecentMap<string, { readonly isThere: boolean; readonly at: number }>(
    MAX_REMEMBERED,
  );

  async function hasProgram(name: string): Promise<boolean> {
    const known = found.get(name);
    if (known !== undefined && clock.monotonic() - known.at < REMEMBERED_MS) return known.isThere;
    const isThere = PLAIN_NAME.test(name) && (await isOnPath(name, env));
    found.set(name, { isThere, at: clock.monotonic() });
    return isThere;
  }

  return {
    /** What is missing, for people; empty where nothing is. */
    async missing({ bins, env: names, os }: SkillNeeds): Promise<readonly string[]> {
      const programs = await Promise.all(
        bins.map(async (name) => ((await hasProgram(name)) ? [] : [t`the program ${name}`])),
      );
      const variables = names
        .filter((name) => (env[name] ?? '') === '')
        .map((name) => t`the environment variable ${name}`);
      const system = os.length === 0 || os.includes(platform) ? [] : [t`one of: ${os.join(', ')}`];
      return [...programs.flat(), ...variables, ...system];
    },
  };
}

export const SKILLS = port<Skills>('skills');

export function install(kernel: Kernel): void {
  const { home, env, clock, live, add } = kernel;
  const skills = openSkills({ home, env, clock, workspace: () => live.defaults.workspace });
  kernel.provide(SKILLS, skills);
  add.command(...skillsCommands(skills));
  add.routes(
    [
      'GET /api/v1/skills',
      'GET /api/v1/skills/:name',
      'POST /api/v1/skills',
      'POST /api/v1/skills/review',
      'POST /api/v1/skills/:name/accept',
      'POST /api/v1/skills/:name/remove',
      'POST /api/v1/skills/:name/choose',
    ],
    async () => {
      const { skillRoutes } = await import('./skill-routes.ts');
      const { openSkillMaintenance } = await import('./skill-maintenance.ts');
      const care = () => openSkillMaintenance(home, env, clock);
      return skillRoutes({ care, audit: kernel.measuring.audit });
    },
  );
}

export const skillsFolder = (workspace: string) => join(workspace, SKILLS_FOLDER);

type SkillsParts = Pick<Kernel, 'env' | 'clock'> & {
  readonly home: Pick<Home, 'root' | 'skillPins' | 'skillChoices'>;
  readonly workspace: () => string;
};

/** The skills of a home, for the agent and for maintenance commands. */
/** As the agent uses them. */
const openSkills = (parts: SkillsParts): Skills =>
  chosenSkills(openAllSkills(parts), createSkillChoices(parts.home.skillChoices));

/** Also those that are switched off. */
export function openAllSkills({ home, env, clock, workspace }: SkillsParts): Skills {
  return createSkillCatalog({
    files: createGuardedFiles({ forbidden: [home.root] }),
    pins: createSkillPinRows(home.skillPins),
    needs: createNeedsCheck(env, clock),
    workspace: () => skillsFolder(workspace()),
    shipped: SHIPPED_SKILLS,
  });
}
