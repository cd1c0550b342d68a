// The system prompt: what is in it, in which order, how much of it, and what it admits to leave out.

import { describe, expect, it } from 'vitest';
import { createSections } from '../../src/agent/model-call.ts';
import { buildPrompt, type PromptParts } from '../../src/agent/rules/prompt.ts';
import { callBudget, promptBudgets, textTokens } from '../../src/agent/rules/tokens.ts';

const CLOUD = { contextTokens: 128_000, local: false };
const PARTS: PromptParts = {
  files: [
    { name: 'AGENTS.md', text: 'agents text' },
    { name: 'SOUL.md', text: 'soul text' },
  ],
  channelContext: { name: 'CONTEXT-email.md', text: 'letters are formal' },
  memoryFile: 'memory/MEMORY.md',
  memory: 'the cat is called Mia',
  skills: '- tea: brews tea',
  activeSkills: '## calm\n\nNever shout.',
  profiles: '- scout: looks for pages',
  isChecked: true,
  toolGuidance: 'read before you write',
  workspace: '/home/ann/workspace',
  platform: 'linux',
  channel: 'email',
  chat: 'thread-7',
  timeZone: 'Europe/Berlin',
  language: 'German',
};
const lines = (count: number, text: string) =>
  Array.from({ length: count }, (_, index) => `${text} ${index + 1}`).join('\n');
const wholeOf = (parts: PromptParts, model = CLOUD) =>
  buildPrompt(parts, model)
    .map(({ text }) => text)
    .join('\n\n');

describe('the system prompt', () => {
  it('shares its section among chats, and builds it anew for every other source', () => {
    const sectionOf = createSections();
    const built = (parts: PromptParts, model = CLOUD) => buildPrompt(parts, model, sectionOf);
    const [shared] = built(PARTS);
    const elsewhere = { channel: 'lark', chat: 'room', timeZone: 'Asia/Tokyo', language: 'Greek' };
    expect(built({ ...PARTS, ...elsewhere })[0]).toBe(shared);
    const changes: Partial<PromptParts>[] = [
      ...[{ files: PARTS.files.slice(1) }, { files: [{ name: 'AGENTS.md', text: 'other' }] }],
      ...[{ channelContext: { name: 'CONTEXT.md', text: 'other' } }, { isChecked: false }],
      ...(['memory', 'skills', 'activeSkills', 'profiles', 'toolGuidance'] as const).map((key) => ({
        [key]: 'other',
      })),
      ...[{ workspace: '/other' }, { platform: 'other' }],
    ];
    for (const change of changes) {
      const parts = { ...PARTS, ...change };
      expect(built(parts)).toEqual(buildPrompt(parts, CLOUD));
      expect(built(parts)).not.toEqual(built(PARTS));
    }
    const small = { contextTokens: 4000, local: true };
    expect(built(PARTS, small)).toEqual(buildPrompt(PARTS, small));
  });

  it('holds its sections in order, what is remembered behind all that stays, and no time', () => {
    const sections = buildPrompt(PARTS, CLOUD);
    const whole = wholeOf(PARTS);
    const marks = [
      'You are nanobot',
      'Do not invent facts',
      'claims an action no tool did comes back',
      'agents text',
      'soul text',
      'letters are formal',
      'brews tea',
      'scout: looks for pages',
      'read before you write',
      'the cat is called Mia',
      'channel email, chat thread-7',
      'says when it came (Europe/Berlin)',
      'Answer in German',
    ];
    const places = marks.map((mark) => whole.indexOf(mark));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
    expect(sections.map(({ stable }) => stable)).toEqual([true, false]);
    expect(whole).not.toMatch(/\d{4}-\d\d/);
  });

  it('names skills also where one that is always in use would take all the room', () => {
    const activeSkills = `## calm\n\n${lines(8000, 'never shout')}`;
    const whole = wholeOf({ ...PARTS, activeSkills });
    expect(whole).toContain('- tea: brews tea');
    expect(whole).toMatch(/- Active skills: only the first \d+ lines shown/);
    const crowded = wholeOf({ ...PARTS, activeSkills, skills: lines(9000, '- tea: brews tea') });
    expect(crowded).toMatch(/- Skills: only the first \d+ lines shown; read_skill with/);
  });

  it('has no heading for what is not there', () => {
    const { channelContext: _none, ...bare } = PARTS;
    const whole = wholeOf({
      ...bare,
      files: [],
      memory: '',
      skills: '',
      activeSkills: '',
      profiles: '',
      toolGuidance: '',
    });
    expect(whole).not.toContain('# ');
  });

  it('cuts a long file at a line and says where the rest is', () => {
    const files = [
      { name: 'AGENTS.md', text: lines(2000, 'rule') },
      { name: 'USER.md', text: 'likes tea\nand coffee' },
    ];
    const whole = wholeOf({ ...PARTS, files });
    const shown = [...whole.matchAll(/^rule \d+$/gm)].length;
    expect(whole).toContain(`AGENTS.md: only the first ${shown} lines shown; use read_file`);
    expect(shown).toBeGreaterThan(100);
    expect(whole).toContain('USER.md: not shown; use read_file');
  });

  it('keeps the newest facts of a long memory', () => {
    const whole = wholeOf({ ...PARTS, memory: lines(5000, 'fact') });
    expect(whole).toContain('fact 5000');
    expect(whole).not.toContain('fact 1\n');
    expect(whole).toMatch(/memory\/MEMORY\.md: only the last \d+ lines shown; use read_file/);
  });

  it('of a small local model stays within its cap, whatever the files hold', () => {
    const big = lines(5000, 'text');
    const parts = {
      ...PARTS,
      files: ['AGENTS.md', 'SOUL.md', 'USER.md'].map((name) => ({ name, text: big })),
      channelContext: { name: 'CONTEXT.md', text: big },
      memoryFile: 'memory/MEMORY.md',
      memory: big,
      toolGuidance: big,
    };
    const model = { contextTokens: 4096, local: true };
    const notes = 120;
    expect(textTokens(wholeOf(parts, model))).toBeLessThan(
      promptBudgets(model).wholeTokens + notes,
    );
  });
});

describe('budgets', () => {
  it.each([
    [
      { contextTokens: 4096, local: true },
      { filesTokens: 300, memoryTokens: 100, profilesTokens: 100 },
    ],
    [
      { contextTokens: 128_000, local: true },
      { filesTokens: 2000, memoryTokens: 1000 },
    ],
    [
      { contextTokens: 8192, local: false },
      { filesTokens: 500, memoryTokens: 200 },
    ],
    [
      { contextTokens: 128_000, local: false },
      { filesTokens: 2560, memoryTokens: 1280, profilesTokens: 2560 },
    ],
    [
      { contextTokens: 2_000_000, local: false },
      { filesTokens: 20_000, memoryTokens: 10_000 },
    ],
  ])('of %o are %o', (model, expected) => {
    expect(promptBudgets(model)).toMatchObject(expected);
  });

  it('leave room for the question whatever answer length is configured', () => {
    expect(callBudget(128_000, 4096)).toMatchObject({ outputTokens: 4096, inputTokens: 104_704 });
    expect(callBudget(4096, 100_000)).toMatchObject({ outputTokens: 819, inputTokens: 2662 });
  });
});
