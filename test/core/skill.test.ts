import { describe, expect, it } from 'vitest';
import {
  isSkillName,
  readManifest,
  skillLine,
  skillsNamedIn,
  splitFrontMatter,
} from '../../src/features/skills/rules/skill.ts';
import { hiddenCharactersIn } from '../../src/lib/text/cut.ts';

describe('the front matter of a skill', () => {
  it.each([
    ['---\ndescription: x\n---\nBody', { header: 'description: x', body: 'Body' }],
    ['\uFEFF---\r\ndescription: x\r\n---\r\nBody\r\n', { header: 'description: x', body: 'Body' }],
    ['---\na: 1\n---', { header: 'a: 1', body: '' }],
    ['description: x', undefined],
    ['', undefined],
    ['---\nnever ends', undefined],
  ])('is told from the text in %j', (text, parts) => {
    expect(splitFrontMatter(text)).toEqual(parts);
  });

  it.each([
    [{ description: ' brews\n good tea ' }, 'brews good tea'],
    [{ description: 'a\u202Eb' }, 'ab'],
  ])('says the purpose on one line: %j', (values, description) => {
    expect(readManifest(values, 'tea')).toMatchObject({ kind: 'valid', manifest: { description } });
  });

  it.each([
    [{ requires: { bins: 'git', env: ['KEY'], os: ['macos', 'linux'] } }],
    [
      {
        metadata: { nanobot: { requires: { bins: ['git'], env: 'KEY', os: ['macos', 'linux'] } } },
      },
    ],
    [
      {
        metadata: { openclaw: { requires: { bins: ['git'], env: ['KEY'], os: ['mac', 'linux'] } } },
      },
    ],
  ])('says what is needed, in the places agents use: %j', (more) => {
    const found = readManifest({ description: 'x', ...more }, 'tea');
    const needs = { bins: ['git'], env: ['KEY'], os: ['darwin', 'linux'] };
    expect(found).toMatchObject({ kind: 'valid', manifest: { needs } });
  });

  it.each([
    [{}, 'tea', /description.*add a line/],
    [{ description: '' }, 'tea', /description: it is empty; add a line/],
    [{ description: 'x'.repeat(1025) }, 'tea', /description: 1025 characters; keep it under 1024/],
    [{ description: 'x' }, 'Tea Time', /the folder "Tea Time": rename it/],
    [['a list'], 'tea', /front matter/],
    [null, 'tea', /description/],
    [{ description: 'x', always: 'maybe' }, 'tea', /always/],
  ])('is refused with the field and what to do: %j in %s', (values, folder, problem) => {
    const found = readManifest(values, folder);
    expect(found.kind === 'invalid' ? found.problem : found).toMatch(problem);
  });

  it('warns where the name is not that of the folder', () => {
    const found = readManifest({ name: 'coffee', description: 'x' }, 'tea');
    expect(found).toMatchObject({ manifest: { name: 'tea' }, warnings: [/name/] });
  });
});

describe('a skill in the list', () => {
  it('says its purpose, shortened, and what is missing', () => {
    expect(skillLine({ name: 'tea', description: 'brews tea' })).toBe('- tea: brews tea');
    expect(skillLine({ name: 'tea', description: 'x'.repeat(400) }).length).toBeLessThan(320);
    expect(skillLine({ name: 'tea', description: 'x' }, ['the program kettle'])).toContain(
      'kettle',
    );
  });

  it.each([
    '',
    '.',
    '..',
    'a/b',
    'a\\b',
    '-a',
    'a-',
    'a--b',
    'A',
    'a b',
    'ä',
    'a'.repeat(65),
    'a.',
  ])('is never called %j', (name) => expect(isSkillName(name)).toBe(false));
});

describe('a skill that a message names', () => {
  it.each([
    ['Please use the tea skill for this', ['tea']],
    ['nimm den Skill "tea"', ['tea']],
    ['skill: tea, then web-research', ['tea', 'web-research']],
    ['Use the Web-Research skill.', ['web-research']],
    ['tea with milk takes skill', []],
    ['the teapot skill', []],
    ['a cross-web-research-y thing', []],
  ])('is found in %j', (message, names) => {
    expect(skillsNamedIn(message, ['tea', 'web-research'])).toEqual(names);
  });
});

describe('hidden characters', () => {
  it.each([
    ['plain\ttext\r\nwith lines', undefined],
    ['👨‍👩‍👧 family, ❤️ and می‌خواهم', undefined],
    ['\uFEFFat the start', undefined],
    ['a\u202Eb', 'U+202E'],
    ['a\u200Bb', 'U+200B'],
    ['a\u{E0041}b', 'U+E0041'],
    ['a \u200Db', 'U+200D'],
    ['a\uFEFFb', 'U+FEFF'],
    ['a\u0007b', 'U+0007'],
  ])('are found in %j', (text, found) => {
    expect(hiddenCharactersIn(text)).toBe(found);
  });
});
