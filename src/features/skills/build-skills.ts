// Builds what knows the skills, for the agent and for the commands that look after them.

import { join } from 'node:path';
import { SKILLS_FOLDER } from '../../agent/rules/prompt.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { SHIPPED_SKILLS } from '../../kernel/config/files/package-files.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createSkillCatalog } from './catalog.ts';
import { createNeedsCheck } from './needs.ts';
import { createPinBook } from './pins.ts';
import type { Skills } from './skills.ts';

export type SkillsParts = {
  readonly home: Pick<Home, 'root' | 'skillPins'>;
  readonly env: Environment;
  readonly clock: Clock;
  readonly workspace: () => string;
};

export const skillsFolder = (workspace: string) => join(workspace, SKILLS_FOLDER);

export function buildSkills({ home, env, clock, workspace }: SkillsParts): Skills {
  return createSkillCatalog({
    files: createGuardedFiles({ forbidden: [home.root] }),
    pins: createPinBook(home.skillPins),
    needs: createNeedsCheck(env, clock),
    workspace: () => skillsFolder(workspace()),
    shipped: SHIPPED_SKILLS,
  });
}
