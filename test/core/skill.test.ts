import { describe, expect, it } from 'vitest';
import { skillLine } from '../../src/core/skill.ts';

const PATH = 'skills/tea/SKILL.md';

describe('a skill in the system prompt', () => {
  it.each([
    ['---\nname: tea\ndescription: brews tea\n---\nBoil.', `- tea: brews tea (${PATH})`],
    ['---\ndescription: "brews: tea"\n---\n', `- tea: brews: tea (${PATH})`],
    [
      '---\nname: tea\ndescription: >\n  brews\n  good tea\nalways: false\n---',
      `- tea: brews good tea (${PATH})`,
    ],
    ['---\r\nname: tea\r\ndescription: brews tea\r\n---\r\n', `- tea: brews tea (${PATH})`],
    ['---\nname: tea\n---\nno purpose', undefined],
    ['description: not in front matter', undefined],
    ['', undefined],
  ])('reads %j', (text, line) => {
    expect(skillLine(PATH, text)).toBe(line);
  });
});
