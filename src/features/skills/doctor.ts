// Checks whether every skill can be used.

import { type Finding, type Machine, ok, warn } from '../../cli/doctor/machine-checks.ts';
import { printable } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { Skill } from './skills.ts';

export async function checkSkills({ home, env, clock }: Machine): Promise<readonly Finding[]> {
  const { openSkillMaintenance } = await import('./skill-maintenance.ts');
  const skills = await (await openSkillMaintenance(home, env, clock)).skills.list();
  const findings = skills.flatMap((skill) => findingOf(skill) ?? []);
  return findings.length > 0 ? findings : [ok('skills', t`${skills.length}, all usable`)];
}

function findingOf({ name, state }: Skill): Finding | undefined {
  switch (state.kind) {
    case 'ready':
    case 'off':
      return undefined;
    case 'lacking':
      return ok('skills', t`${name} is not available; missing: ${state.missing.join(', ')}`);
    case 'changed':
      return warn(
        'skills',
        t`${name} changed since it was added and is disabled`,
        t`Check what changed, then run: nanobot skills accept ${name}`,
      );
    case 'broken':
      return warn(
        'skills',
        t`${printable(name)} cannot be used: ${printable(state.problem)}`,
        t`Correct its SKILL.md, then run: nanobot skills validate`,
      );
  }
}
