// CONTRACT of skills: instructions that the agent reads when it needs them. Those of the workspace
// come before the shipped ones; one that changed since it was added is not offered.

import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import {
  type Command,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import { NanobotError, ToolError } from '../../kernel/message/errors.ts';
import { fileStamp, writeAtomic } from '../../lib/files/files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { t } from '../../lib/texts.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';
import { isSkillName, withOtherFiles } from './rules/skill.ts';

type SkillState =
  | { readonly kind: 'ready' }
  /** What is missing: programs, environment variables, the operating system. */
  | { readonly kind: 'lacking'; readonly missing: readonly string[] }
  /** Its SKILL.md differs from the one that was reviewed when it was added. */
  | { readonly kind: 'changed' }
  /** Switched off by the owner. */
  | { readonly kind: 'off' }
  | { readonly kind: 'broken'; readonly problem: string };

export type Skill = {
  readonly name: string;
  readonly description: string;
  readonly isAlways: boolean;
  readonly origin: 'workspace' | 'shipped';
  /** Where an added skill came from. */
  readonly source?: string;
  readonly state: SkillState;
};

export type SkillFile = {
  /** Relative to the skill's folder. */
  readonly path: string;
  readonly text: string;
  /** The other files of the skill. */
  readonly others: readonly string[];
};

export interface Skills {
  /** By name. */
  list(): Promise<readonly Skill[]>;
  /** SKILL.md without its front matter, or another file of the skill. @throws SkillError */
  read(name: string, file?: string): Promise<SkillFile>;
}

export type SkillProblem =
  | 'unknown'
  | 'not_ready'
  | 'changed'
  | 'bad_source'
  | 'refused'
  | 'exists';

/** A problem of a skill, with a message for the model and for people. */
export class SkillError extends NanobotError {
  override readonly name = 'SkillError';
  readonly problem: SkillProblem;
  constructor(problem: SkillProblem, message: string, options: { readonly cause?: unknown } = {}) {
    super(`skill_${problem}`, message, options);
    this.problem = problem;
  }
}

// Tool: reads the instructions of a skill that the prompt lists by name.

const ITSELF = /^(?:\.\/)*(?:skill\.md)?$/i;

const input = z
  .object({
    name: z.string().min(1).max(64).describe('Its name in the list of skills.'),
    file: z
      .string()
      .max(200)
      .optional()
      .describe('Path of another file of the skill; default: the skill itself.'),
  })
  // One canonical form, so that repeated reading is recognised.
  .transform(({ name, file }) => ({
    name,
    ...(file === undefined || ITSELF.test(file) ? {} : { file }),
  }));
type Input = z.infer<typeof input>;

export function createReadSkill(skills: Pick<Skills, 'read'>): Tool<Input> {
  return {
    name: 'read_skill',
    ...readDescription('read_skill'),
    access: 'read',
    input,
    describe: ({ name, file }) => (file === undefined ? name : `${name}/${file}`),
    async run({ name, file }) {
      const { text, others } = await skills.read(name, file).catch((error: unknown) => {
        if (!(error instanceof SkillError)) throw error;
        throw new ToolError(KINDS[error.problem], error.message, { cause: error });
      });
      return file === undefined ? withOtherFiles(text, others) : text;
    },
  };
}

const KINDS: Readonly<Record<SkillProblem, ToolError['kind']>> = {
  unknown: 'not_found',
  not_ready: 'execution',
  changed: 'blocked',
  bad_source: 'execution',
  refused: 'blocked',
  exists: 'execution',
};

// The command `/skills`: lists the skills and why one is not in use.

export const SKILLS_COMMANDS = {
  skills: {
    summary: t`list my skills`,
    access: { direct: 'trusted', group: 'owner' },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function skillsCommands(skills: Pick<Skills, 'list'>): readonly Command[] {
  return commandsOf(SKILLS_COMMANDS, {
    async skills() {
      const lines = (await skills.list()).map(lineOf);
      if (lines.length === 0) return t`There are no skills. Add one with \`nanobot skills add\`.`;
      return `Skills:\n${lines.join('\n')}`;
    },
  });
}

function lineOf({ name, description, isAlways, state }: Skill): string {
  switch (state.kind) {
    case 'ready':
      return `- **${name}**${isAlways ? t` (always in use)` : ''}: ${description}`;
    case 'lacking':
      return t`- **${name}** (missing: ${state.missing.join(', ')}): ${description}`;
    case 'off':
      return t`- **${name}** (switched off)`;
    case 'changed':
      return t`- **${name}** (not in use: changed since it was added)`;
    case 'broken':
      return t`- **${name}** (not in use: ${state.problem})`;
  }
}

// Source and SHA-256 of every file of a skill that was added from elsewhere. Stored outside the
// workspace, where the agent cannot write.

const pin = z.strictObject({
  source: z.string(),
  addedAt: z.iso.datetime(),
  /** By path relative to the skill's folder, in hexadecimal. */
  files: z.record(z.string(), z.string()),
});
export type SkillPin = Readonly<z.infer<typeof pin>>;

const pinFile = z.strictObject({
  version: z.literal(1),
  skills: z.record(z.string().refine(isSkillName), pin),
});

type SkillPins = ReadonlyMap<string, SkillPin>;

export type SkillPinRows = ReturnType<typeof createSkillPinRows>;

export const sha256 = (bytes: string | Uint8Array) => hash('sha256', bytes);

export function createSkillPinRows(path: string) {
  let cached: { readonly stamp: string; readonly pins: SkillPins } | undefined;

  /** Read again when the file changed. @throws NanobotError where it is damaged */
  async function all(): Promise<SkillPins> {
    const stamp = fileStamp(path);
    if (stamp === undefined) return new Map();
    if (cached?.stamp !== stamp) cached = { stamp, pins: parse(await readFile(path, 'utf8')) };
    return cached.pins;
  }

  function parse(text: string): SkillPins {
    try {
      return new Map(Object.entries(pinFile.parse(JSON.parse(text)).skills));
    } catch (cause) {
      const message = t`${path} is damaged: restore it, or delete it and add the skills again`;
      throw new NanobotError('skill_pins_damaged', message, { cause });
    }
  }

  return {
    all,
    /** `undefined` removes it. */
    async set(name: string, value: SkillPin | undefined): Promise<void> {
      const pins = new Map(await all());
      if (value === undefined) pins.delete(name);
      else pins.set(name, value);
      const skills = Object.fromEntries([...pins].sort(([a], [b]) => (a < b ? -1 : 1)));
      await writeAtomic(path, `${JSON.stringify({ version: 1, skills }, undefined, 2)}\n`);
    },
  };
}

// The archive that a repository name or address refers to.

export type RepositoryPlace = {
  /** Of a tar archive. */
  readonly url: string;
  /** Within the archive, below its only folder; empty = all of it. */
  readonly folder: string;
  /** As a person would name it. */
  readonly source: string;
};

const PART = '[A-Za-z0-9._-]+';
const SHORT = new RegExp(`^(${PART})/(${PART})((?:/${PART})*)(?:#([A-Za-z0-9._/-]+))?$`);
const TREE = /^(?:-\/)?(?:tree|src\/branch|blob)\/([^/]+)((?:\/[^/]+)*)$/;
const ARCHIVE = /\.(?:tar|tar\.gz|tgz)$/i;

/** Undefined where it is neither. */
export function archiveOf(where: string): RepositoryPlace | undefined {
  if (!/^https?:/i.test(where)) return shortName(where);
  const url = URL.parse(where);
  if (url === null) return undefined;
  if (ARCHIVE.test(url.pathname)) return { url: url.href, folder: '', source: where };
  return browsed(url);
}

function shortName(where: string): RepositoryPlace | undefined {
  const [, owner, name, folder = '', ref = 'HEAD'] = SHORT.exec(where) ?? [];
  if (owner === undefined || name === undefined || hasDots(where)) return undefined;
  const url = `https://codeload.github.com/${owner}/${name}/tar.gz/${ref}`;
  return { url, folder: folder.slice(1), source: where };
}

/** As copied from a browser. */
function browsed({ host, pathname, href }: URL): RepositoryPlace | undefined {
  const [owner, repository, ...rest] = pathname.split('/').filter((part) => part !== '');
  if (owner === undefined || repository === undefined || hasDots(pathname)) return undefined;
  const name = repository.replace(/\.git$/, '');
  const [, ref = 'HEAD', below = ''] = TREE.exec(rest.join('/')) ?? [];
  const folder = below.slice(1).replace(/\/?SKILL\.md$/, '');
  const url = ARCHIVES[host]?.(owner, name, ref);
  return url === undefined ? undefined : { url, folder, source: href };
}

const ARCHIVES: Readonly<Record<string, (owner: string, name: string, ref: string) => string>> = {
  'github.com': (owner, name, ref) => `https://codeload.github.com/${owner}/${name}/tar.gz/${ref}`,
  'gitlab.com': (owner, name, ref) =>
    `https://gitlab.com/${owner}/${name}/-/archive/${ref}/${name}.tar.gz`,
  'codeberg.org': (owner, name, ref) =>
    `https://codeberg.org/${owner}/${name}/archive/${ref}.tar.gz`,
};

const hasDots = (path: string) => path.split('/').includes('..');

// The files of one skill, by path relative to its folder.

const MAX_FILES = 200;
const MAX_DEPTH = 5;

/** Leaves out links and protected files. `root` contains the skill's folder. */
export async function listSkillFiles(
  files: GuardedFiles,
  root: string,
  name: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  const walk = async (below: string, depth: number): Promise<void> => {
    const path = below === '' ? name : `${name}/${below}`;
    const { entries } = await files.list(root, path, { maxEntries: MAX_FILES });
    for (const entry of entries) {
      if (found.length >= MAX_FILES) return;
      const inside = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.kind === 'file') found.push(inside);
      if (entry.kind === 'folder' && depth < MAX_DEPTH) await walk(inside, depth + 1);
    }
  };
  await walk('', 1);
  return found;
}
