// The care of skills, opened for one command: what is there, looking at one from elsewhere, adding and
// removing it.

import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { buildSkills, skillsFolder } from './catalog.ts';
import {
  acceptSkill,
  existingSkill,
  type FoundSkill,
  findSkill,
  type InstallDeps,
  installSkill,
  removeSkill,
} from './install.ts';
import { reviewPackage, type SkillReview } from './package.ts';
import { createPinBook } from './pins.ts';
import type { Skills } from './skills.ts';

export interface SkillCare {
  readonly skills: Skills;
  /** Fetches and checks it; nothing is written. @throws SkillError */
  look(
    where: string,
    signal: AbortSignal,
  ): Promise<{ readonly found: FoundSkill; readonly review: SkillReview }>;
  /** @throws SkillError */
  add(found: FoundSkill, options: { readonly replace: boolean }): Promise<void>;
  /** @throws SkillError */
  /** @throws SkillError where the workspace has none of this name */
  known(name: string): Promise<unknown>;
  remove(name: string): Promise<void>;
  /** The files that are not as they were. @throws SkillError */
  accept(name: string): Promise<readonly string[]>;
}

/** @throws ConfigError: the configuration says where the workspace is. */
export async function openSkillCare(
  home: Home,
  env: Environment,
  clock: Clock,
): Promise<SkillCare> {
  const { config } = await loadConfig(home, env);
  const { workspace } = config.agents.defaults;
  const fetch = createSafeFetch({ rules: () => config.tools.web });
  const deps: InstallDeps = {
    folder: skillsFolder(workspace),
    pins: createPinBook(home.skillPins),
    files: createGuardedFiles({ forbidden: [home.root] }),
    now: () => new Date(clock.now()),
  };
  return {
    skills: buildSkills({ home, env, clock, workspace: () => workspace }),
    async look(where, signal) {
      const found = await findSkill(where, fetch, signal);
      return { found, review: await reviewPackage(found) };
    },
    add: (found, options) => installSkill(found, options, deps),
    known: (name) => existingSkill(name, deps.folder),
    remove: (name) => removeSkill(name, deps),
    accept: (name) => acceptSkill(name, deps),
  };
}
