// The maintenance of skills for one command: list, review one from elsewhere, add and remove.

import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { openSkills, skillsFolder } from './index.ts';
import {
  acceptSkill,
  existingSkill,
  type FoundSkill,
  findSkill,
  type InstallDeps,
  installSkill,
  removeSkill,
} from './install-skill.ts';
import { reviewPackage } from './package.ts';
import { createSkillPinRows } from './skills.ts';

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
  return {
    skills: openSkills({ home, env, clock, workspace: () => workspace }),
    /** Fetches and reviews it; writes nothing. @throws SkillError, as all that follow */
    async look(where: string, signal: AbortSignal) {
      const found = await findSkill(where, fetch, signal);
      return { found, review: await reviewPackage(found) };
    },
    add: (found: FoundSkill, options: { readonly replace: boolean }) =>
      installSkill(found, options, deps),
    /** @throws SkillError where the workspace has no skill of this name */
    known: (name: string) => existingSkill(name, deps.folder),
    remove: (name: string) => removeSkill(name, deps),
    /** Returns the files that had changed. */
    accept: (name: string) => acceptSkill(name, deps),
  };
}
