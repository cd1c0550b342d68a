// Checks whether every skill can be used.

import { type Finding, ok, warn } from '../../cli/doctor/machine-checks.ts';
import { printable, type Terminal } from '../../cli/terminal.ts';
import type { Skill } from './skills.ts';

export async function checkSkills({ home, env, clock }: Terminal): Promise<readonly Finding[]> {
  const { openSkillMaintenance } = await import('./skill-maintenance.ts');
  const skills = await (await openSkillMaintenance(home, env, clock)).skills.list();
  const findings = skills.flatMap((skill) => findingOf(skill) ?? []);
  return findings.length > 0 ? findings : [ok('skills', `${skills.length}, all usable`)];
}

function findingOf({ name, state }: Skill): Finding | undefined {
  switch (state.kind) {
    case 'ready':
      return undefined;
    case 'lacking':
      return ok('skills', `${name} is not available; missing: ${state.missing.join(', ')}`);
    case 'changed':
      return warn(
        'skills',
        `${name} changed since it was added and is disabled`,
        `Check what changed, then run: nanobot skills accept ${name}`,
      );
    case 'broken':
      return warn(
        'skills',
        `${printable(name)} cannot be used: ${printable(state.problem)}`,
        'Correct its SKILL.md, then run: nanobot skills validate',
      );
  }
}
