// The format of a skill: a folder whose SKILL.md states purpose and requirements in its front
// matter, followed by the instructions. Follows the Agent Skills format
// (agentskills.io/specification); `always` and `requires` are also read from the `metadata` that
// other agents use.

import { z } from 'zod';
import { headOf, shortened } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';

const FRONT_MATTER = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;
const MAX_NAME_CHARS = 64;
const MAX_DESCRIPTION_CHARS = 1024;
/** Length of a description in the list that every prompt contains. */
const MAX_LISTED_CHARS = 300;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const INVISIBLE = /(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** All of them are required. */
export type SkillNeeds = {
  /** Programs. */
  readonly bins: readonly string[];
  /** Names of environment variables. */
  readonly env: readonly string[];
  /** Names of `process.platform` (darwin, linux, win32); empty = everywhere. */
  readonly os: readonly string[];
};

export type SkillManifest = {
  readonly name: string;
  readonly description: string;
  /** The skill is in every prompt instead of being read when needed. */
  readonly isAlways: boolean;
  readonly needs: SkillNeeds;
};

type ReadManifest =
  | {
      readonly kind: 'valid';
      readonly manifest: SkillManifest;
      /** What other programs that read skills would reject. */
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'invalid'; readonly problem: string };

/** Undefined where the text does not begin with front matter. */
export function splitFrontMatter(
  text: string,
): { readonly header: string; readonly body: string } | undefined {
  const match = FRONT_MATTER.exec(text);
  if (match === null) return undefined;
  return { header: match[1] ?? '', body: text.slice(match[0].length).trim() };
}

/** Valid as a skill name and as a folder name on every system. */
export function isSkillName(name: string): boolean {
  return name.length <= MAX_NAME_CHARS && NAME.test(name);
}

const words = z
  .union([z.string().transform((one) => [one]), z.array(z.string())])
  .transform((list) => list.map((item) => item.trim()).filter((item) => item !== ''))
  .default([]);

const requires = z.object({ bins: words, env: words, os: words });

const nested = z.object({ requires: requires.optional(), always: z.boolean().optional() });

const frontMatter = z.object({
  name: z.string().optional(),
  description: z.string(),
  always: z.boolean().optional(),
  requires: requires.optional(),
  metadata: z
    .object({ nanobot: nested.optional(), openclaw: nested.optional() })
    .optional()
    .catch(undefined),
});

const PLATFORMS: Readonly<Record<string, string>> = {
  macos: 'darwin',
  mac: 'darwin',
  osx: 'darwin',
  windows: 'win32',
};

/** `values`: parsed from the front matter; `folder`: the name of its folder. */
export function readManifest(values: unknown, folder: string): ReadManifest {
  const parsed = frontMatter.safeParse(values ?? {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = issue?.path.join('.') || t`the front matter`;
    return invalid(`${field}: ${issue?.message ?? t`not readable`}; ${REMEDIES[field] ?? REMEDY}`);
  }
  const { name, description, metadata = {} } = parsed.data;
  if (!isSkillName(folder)) {
    return invalid(
      t`the folder "${headOf(folder, MAX_NAME_CHARS)}": rename it to small letters, digits and single hyphens, at most ${MAX_NAME_CHARS}`,
    );
  }
  const purpose = description.replace(/\s+/g, ' ').replace(INVISIBLE, '').trim();
  if (purpose === '') return invalid(t`description: it is empty; ${REMEDIES['description']}`);
  if (purpose.length > MAX_DESCRIPTION_CHARS) {
    return invalid(
      t`description: ${purpose.length} characters; keep it under ${MAX_DESCRIPTION_CHARS} and put the rest below the front matter`,
    );
  }
  const { nanobot = {}, openclaw = {} } = metadata;
  const needs = parsed.data.requires ?? nanobot.requires ?? openclaw.requires;
  const isAlways = parsed.data.always ?? nanobot.always ?? openclaw.always ?? false;
  return {
    kind: 'valid',
    manifest: { name: folder, description: purpose, isAlways, needs: plain(needs) },
    warnings: name === folder ? [] : [t`name: it should be that of the folder, "${folder}"`],
  };
}

const REMEDY = t`see skills/skill-creator for the form`;
const REMEDIES: Readonly<Record<string, string>> = {
  description: t`add a line "description: what it does and when to use it"`,
};

const invalid = (problem: string): ReadManifest => ({ kind: 'invalid', problem });

function plain(needs: z.infer<typeof requires> | undefined): SkillNeeds {
  const { bins = [], env = [], os = [] } = needs ?? {};
  return { bins, env, os: os.map((name) => PLATFORMS[name.toLowerCase()] ?? name.toLowerCase()) };
}

/** One line of the prompt's list; names what is missing, so that nobody tries in vain. */
export function skillLine(
  { name, description }: Pick<SkillManifest, 'name' | 'description'>,
  missing: readonly string[] = [],
): string {
  const purpose = shortened(description, MAX_LISTED_CHARS, ' ...');
  const lacks =
    missing.length === 0 ? '' : t` (cannot be used now, missing: ${missing.join(', ')})`;
  return `- ${name}: ${purpose}${lacks}`;
}

/** The text of a skill with the names of its other files. */
export const withOtherFiles = (text: string, others: readonly string[]): string =>
  others.length === 0
    ? text
    : t`${text}\n\n[other files of this skill, read with read_skill and file: ${others.join(', ')}]`;

/**
 * The skills that a message asks for by name: beside the word "skill", because many names are
 * ordinary words; a name with a hyphen is none and stands for itself.
 */
export function skillsNamedIn(message: string, names: readonly string[]): readonly string[] {
  const text = message.toLowerCase();
  return names.filter((name) => {
    const own = `(?<![\\w-])["'\`*]?${name}["'\`*]?(?![\\w-])`;
    const beside = t`\\bskills?[: ]+${own}|${own} skill\\b`;
    return new RegExp(name.includes('-') ? own : beside).test(text);
  });
}
