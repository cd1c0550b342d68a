// Skills over HTTP, as by `nanobot skills`: listed, shown, reviewed, added as reviewed, accepted and
// removed.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import { endpoint, Refusal, type RouteHandlers } from '../../kernel/http-routes.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import { t } from '../../lib/texts.ts';
import type { FoundSkill } from './install-skill.ts';
import { shownSkill, skillList, skillReview, skillText } from './rules/views.ts';
import type { SkillMaintenance } from './skill-maintenance.ts';
import { type Skill, SkillError, type SkillProblem } from './skills.ts';

const MAX_NAME_CHARS = 64;
const MAX_WHERE_CHARS = 1000;
const LOOK_MS = 60_000;

const STATUS: Readonly<Record<SkillProblem, number>> = {
  unknown: 404,
  not_ready: 409,
  changed: 409,
  bad_source: 400,
  refused: 400,
  exists: 409,
};

const oneSkill = z.object({ name: z.string().min(1).max(MAX_NAME_CHARS) });
const where = z
  .string()
  .trim()
  .min(1)
  .max(MAX_WHERE_CHARS)
  .describe(
    'A folder or a .tar.gz file on the gateway’s machine, a URL, or owner/repository/folder.',
  );

/** In bytes of base64. */
const MAX_ARCHIVE_CHARS = 900_000;
const place = z.union([
  z.strictObject({ where }),
  z.strictObject({
    archive: z.base64().min(1).max(MAX_ARCHIVE_CHARS).describe('A .tar or .tar.gz file.'),
    name: z.string().min(1).max(MAX_WHERE_CHARS).describe('Of the file.'),
  }),
]);

type SkillRoutesDeps = {
  /** Reads where the workspace is. */
  care(): Promise<SkillMaintenance>;
  readonly audit: AuditLog;
};

export function skillRoutes({ care, audit }: SkillRoutesDeps) {
  const note = (...words: readonly string[]) => noteCommand(audit, 'skills', ...words);
  const list = async () => ({ skills: (await (await care()).skills.list()).map(skillView) });

  async function look(from: z.output<typeof place>) {
    const { found, review } =
      'where' in from
        ? await (await care()).look(from.where, AbortSignal.timeout(LOOK_MS))
        : await (await care()).lookInto(Buffer.from(from.archive, 'base64'), from.name);
    const known = await (await care()).skills.list();
    return {
      found,
      view: {
        ...{ name: found.name, description: review.description, text: review.text },
        ...{ source: found.source, remarks: [...review.remarks], version: versionOf(found) },
        files: found.files.map(({ path, bytes }) => ({ path, bytes: bytes.length })),
        isThere: known.some(({ name, origin }) => name === found.name && origin === 'workspace'),
      },
    };
  }

  async function one(name: string) {
    const skill = (await (await care()).skills.list()).find((each) => each.name === name);
    if (skill === undefined) throw new Refusal(404, 'skill_unknown', t`There is no such skill.`);
    return skillView(skill);
  }

  return {
    'GET /api/v1/skills': endpoint({ summary: t`All skills`, answer: skillList }, list),
    'GET /api/v1/skills/:name': endpoint(
      { summary: t`The text of a skill`, params: oneSkill, answer: skillText },
      ({ name }) =>
        explained(async () => {
          const { text, others } = await (await care()).skills.read(name);
          return { text, others: [...others] };
        }),
    ),
    'POST /api/v1/skills/review': endpoint(
      {
        summary: t`Fetch and review a skill without adding it`,
        body: z.strictObject({ from: place }),
        answer: skillReview,
      },
      (_params, { from }) => explained(async () => (await look(from)).view),
    ),
    'POST /api/v1/skills': endpoint(
      {
        summary: t`Add a reviewed skill to the workspace`,
        body: z.strictObject({
          from: place,
          version: z.string().max(100),
          replace: z.boolean().default(false),
        }),
        ...{ answer: shownSkill, status: 201 },
      },
      (_params, { from, version, replace }) =>
        explained(async () => {
          const { found, view } = await look(from);
          if (view.version !== version) {
            const message = t`${found.source} has changed since it was reviewed. Review it again.`;
            throw new Refusal(409, 'changed_meanwhile', message);
          }
          await (await care()).add(found, { replace });
          note('add', found.name);
          return one(found.name);
        }),
    ),
    'POST /api/v1/skills/:name/accept': endpoint(
      {
        ...{ summary: t`Accept the current files of a changed skill`, params: oneSkill },
        ...{ body: z.strictObject({}), answer: shownSkill },
      },
      ({ name }) =>
        explained(async () => {
          await (await care()).accept(name);
          note('accept', name);
          return one(name);
        }),
    ),
    'POST /api/v1/skills/:name/choose': endpoint(
      {
        summary: t`Switch a skill on or off, or pin it: in every prompt, or only when needed`,
        params: oneSkill,
        body: z.strictObject({
          isOff: z.boolean().exactOptional(),
          isAlways: z.boolean().exactOptional(),
        }),
        answer: shownSkill,
      },
      ({ name }, change) =>
        explained(async () => {
          await (await care()).choose(name, change);
          const chosen = Object.entries(change).map(([key, value]) => `${key}=${value}`);
          note('choose', name, ...chosen);
          return one(name);
        }),
    ),
    'POST /api/v1/skills/:name/remove': endpoint(
      {
        ...{ summary: t`Delete a skill from the workspace`, params: oneSkill },
        ...{ body: z.strictObject({}), answer: skillList },
      },
      ({ name }) =>
        explained(async () => {
          await (await care()).remove(name);
          note('remove', name);
          return list();
        }),
    ),
  } satisfies RouteHandlers;
}

function skillView({ name, description, origin, source, isAlways, state }: Skill) {
  const problem =
    state.kind === 'lacking'
      ? state.missing.join(', ')
      : state.kind === 'broken'
        ? state.problem
        : undefined;
  return {
    ...{ name, description, origin, isAlways, state: state.kind },
    ...(source === undefined ? {} : { source }),
    ...(problem === undefined ? {} : { problem }),
  };
}

function versionOf({ files }: FoundSkill): string {
  const hash = createHash('sha256');
  for (const { path, bytes } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(JSON.stringify([path, bytes.length])).update(bytes);
  }
  return hash.digest('base64url');
}

/** @throws Refusal where the skill is unknown or refused */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SkillError)) throw error;
    throw new Refusal(STATUS[error.problem], error.code, error.message);
  }
}
