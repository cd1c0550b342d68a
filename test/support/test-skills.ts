// The skills of a test's workspace, and none that are shipped.

import { join } from 'node:path';
import { systemClock } from '../../src/lib/clock.ts';
import { createGuardedFiles } from '../../src/lib/guarded-files.ts';
import { createSkillCatalog } from '../../src/skills/catalog.ts';
import { createNeedsCheck } from '../../src/skills/needs.ts';
import { createPinBook } from '../../src/skills/pins.ts';
import type { Skills } from '../../src/skills/skills.ts';

export function createTestSkills(
  workspace: string,
  env: Readonly<Record<string, string>> = {},
): Skills {
  return createSkillCatalog({
    files: createGuardedFiles(),
    pins: createPinBook(join(workspace, '..', 'skills.json')),
    needs: createNeedsCheck(env, systemClock),
    workspace: () => join(workspace, 'skills'),
    shipped: join(workspace, 'none'),
  });
}
