// Builds what knows the skills, for the agent and for the commands that look after them.

import { join } from 'node:path';
import type { Environment } from '../core/environment.ts';
import { SKILLS_FOLDER } from '../core/prompt.ts';
import type { Clock } from '../lib/clock.ts';
import { createGuardedFiles } from '../lib/guarded-files.ts';
import { createSkillCatalog } from '../skills/catalog.ts';
import { createNeedsCheck } from '../skills/needs.ts';
import { createPinBook } from '../skills/pins.ts';
import type { Skills } from '../skills/skills.ts';
import type { Home } from './home.ts';
import { SHIPPED_SKILLS } from './package-files.ts';

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
