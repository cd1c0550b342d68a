// The maintenance of skills for one command: list, review one from elsewhere, add and remove.

import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { chosenSkills, createSkillChoices } from './choices.ts';
import { openAllSkills, skillsFolder } from './index.ts';
import {
  acceptSkill,
  existingSkill,
  type FoundSkill,
  findInArchive,
  findSkill,
  type InstallDeps,
  installSkill,
  removeSkill,
} from './install-skill.ts';
import { reviewPackage } from './package.ts';
import { createSkillPinRows, SkillError } from './skills.ts';

export type SkillMaintenance = Awaited<ReturnType<typeof openSkillMaintenance>>;

/** @throws ConfigError: the configuration says where the workspace is */
export async function openSkillMaintenance(home: Home, env: Environment, clock: Clock) {
  const { config } = await loadConfig(home, env);
  const { workspace } = config.agents.defaults;
  const fetch = createSafeFetch({
    rules: () => config.tools.web,
    proxy: () => config.network.proxy,
  });
  const deps: InstallDeps = {
    folder: skillsFolder(workspace),
    pins: createSkillPinRows(home.skillPins),
    files: createGuardedFiles({ forbidden: [home.root] }),
    now: () => new Date(clock.now()),
  };
  const all = openAllSkills({ home, env, clock, workspace: () => workspace });
  const choices = createSkillChoices(home.skillChoices);
  const chosen = chosenSkills(all, choices);
  return {
    /** One that is switched off can be looked at. */
    skills: { list: () => chosen.list(), read: all.read.bind(all) },
    /** @throws SkillError where there is no such skill */
    async choose(name: string, change: { readonly isOff?: boolean; readonly isAlways?: boolean }) {
      if (!(await all.list()).some((skill) => skill.name === name)) {
        throw new SkillError('unknown', t`there is no skill "${name}"`);
      }
      const { isOff: wasOff, ...before } = (await choices.all()).get(name) ?? {};
      const { isOff = wasOff === true, ...other } = change;
      await choices.set(name, { ...before, ...other, ...(isOff ? { isOff } : {}) });
    },
    /** One that was sent as an archive. */
    async lookInto(archive: Uint8Array, source: string) {
      const found = await findInArchive(archive, source);
      return { found, review: await reviewPackage(found) };
    },
    /** Fetches and reviews it; writes nothing. @throws SkillError, as all that follow */
    async look(where: string, signal: AbortSignal) {
      const found = await findSkill(where, fetch, signal);
      return { found, review: await reviewPackage(found) };
    },
    add: (found: FoundSkill, options: { readonly replace: boolean }) =>
      installSkill(found, options, deps),
    /** @throws SkillError where the workspace has no skill of this name */
    known: (name: string) => existingSkill(name, deps.folder),
    async remove(name: string) {
      await removeSkill(name, deps);
      await choices.set(name, undefined);
    },
    /** Returns the files that had changed. */
    accept: (name: string) => acceptSkill(name, deps),
  };
}
