// The skills of a test's workspace, and none that are shipped.

import { join } from 'node:path';
import { createNeedsCheck, createSkillCatalog } from '../../src/features/skills/index.ts';
import type { Skills } from '../../src/features/skills/skills.ts';
import { createSkillPinRows } from '../../src/features/skills/skills.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { systemClock } from '../../src/lib/time/clock.ts';

export function createTestSkills(
  workspace: string,
  env: Readonly<Record<string, string>> = {},
): Skills {
  return createSkillCatalog({
    files: createGuardedFiles(),
    pins: createSkillPinRows(join(workspace, '..', 'skills.json')),
    needs: createNeedsCheck(env, systemClock),
    workspace: () => join(workspace, 'skills'),
    shipped: join(workspace, 'none'),
  });
}
