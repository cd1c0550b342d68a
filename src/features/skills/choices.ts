// What an owner chose for single skills: switched off, or always in the prompt. Stored outside the
// workspace, where the agent cannot write.

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { NanobotError } from '../../kernel/message/errors.ts';
import { fileStamp, writeAtomic } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { isSkillName } from './rules/skill.ts';
import { SkillError, type Skills } from './skills.ts';

const choice = z.object({
  isOff: z.literal(true).exactOptional(),
  /** Absent: as the skill says. */
  isAlways: z.boolean().exactOptional(),
});
export type SkillChoice = Readonly<z.infer<typeof choice>>;

const choiceFile = z.object({ skills: z.record(z.string().refine(isSkillName), choice) });

type SkillChoices = ReturnType<typeof createSkillChoices>;

export function createSkillChoices(path: string) {
  let cached:
    | { readonly stamp: string; readonly all: ReadonlyMap<string, SkillChoice> }
    | undefined;

  /** Read again when the file changed. @throws NanobotError where it is damaged */
  async function all(): Promise<ReadonlyMap<string, SkillChoice>> {
    const stamp = fileStamp(path);
    if (stamp === undefined) return new Map();
    if (cached?.stamp !== stamp) cached = { stamp, all: parse(await readFile(path, 'utf8')) };
    return cached.all;
  }

  function parse(text: string) {
    try {
      return new Map(Object.entries(choiceFile.parse(JSON.parse(text)).skills));
    } catch (cause) {
      const message = t`${path} is damaged: restore it, or delete it and choose again`;
      throw new NanobotError('skill_choices_damaged', message, { cause });
    }
  }

  return {
    all,
    /** Undefined: as if nothing had been chosen. */
    async set(name: string, change: SkillChoice | undefined): Promise<void> {
      const chosen = new Map(await all());
      if (change !== undefined) chosen.set(name, change);
      else if (!chosen.delete(name)) return;
      const skills = Object.fromEntries([...chosen].sort(([a], [b]) => (a < b ? -1 : 1)));
      await writeAtomic(path, `${JSON.stringify({ skills }, undefined, 2)}\n`);
    },
  };
}

/** The skills as the owner chose: one that is switched off is not read. */
export function chosenSkills(skills: Skills, choices: Pick<SkillChoices, 'all'>): Skills {
  return {
    async list() {
      const chosen = await choices.all();
      return (await skills.list()).map((skill) => {
        const { isOff, isAlways = skill.isAlways } = chosen.get(skill.name) ?? {};
        return {
          ...skill,
          isAlways,
          ...(isOff === true ? { state: { kind: 'off' } as const } : {}),
        };
      });
    },
    async read(name, file) {
      if ((await choices.all()).get(name)?.isOff === true) {
        throw new SkillError('not_ready', t`the skill "${name}" is switched off by the owner`);
      }
      return skills.read(name, file);
    },
  };
}
