// Whether every skill can be used.

import { type Finding, ok, warn } from '../../cli/doctor/finding.ts';
import { printable, type Terminal } from '../../cli/terminal.ts';
import type { Skill } from './skills.ts';

export async function checkSkills({ home, env, clock }: Terminal): Promise<readonly Finding[]> {
  const { openSkillCare } = await import('./skill-care.ts');
  const skills = await (await openSkillCare(home, env, clock)).skills.list();
  const findings = skills.flatMap((skill) => findingOf(skill) ?? []);
  return findings.length > 0 ? findings : [ok('skills', `${skills.length}, all can be used`)];
}

function findingOf({ name, state }: Skill): Finding | undefined {
  switch (state.kind) {
    case 'ready':
      return undefined;
    case 'lacking':
      return ok('skills', `${name} is not used, missing: ${state.missing.join(', ')}`);
    case 'changed':
      return warn(
        'skills',
        `${name} changed since it was added, and is not offered`,
        `Look at it and run: nanobot skills accept ${name}`,
      );
    case 'broken':
      return warn(
        'skills',
        `${printable(name)} is not offered: ${printable(state.problem)}`,
        'Correct its SKILL.md; nanobot skills validate checks it.',
      );
  }
}
