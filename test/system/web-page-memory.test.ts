// Memory and skills on the web page: notes edited after a look at the difference, an edit made meanwhile
// elsewhere; a skill reviewed, added, changed, accepted and removed.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { noteFolders } from '../../src/features/memory/rules/views.ts';
import { skillList } from '../../src/features/skills/rules/views.ts';
import { describeInChromium } from '../support/chromium.ts';
import { consoleWorld, HOSTILE, LONG_WORD, openScreens } from '../support/console-page.ts';
import { callTools, echo, say } from '../support/llm-server.ts';

const ADA = 1001;
const execute = promisify(execFile);
const MEMORY = `# Memory\n\n- The boat is red.\n- ${HOSTILE}\n`;
const SKILL = `---\ndescription: Brews tea. ${HOSTILE.split(' \u202E')[0]}\n---\n\nBoil ${LONG_WORD} water.\n`;

describeInChromium('memory and skills on the web page', () => {
  let skill: string;

  const { world, api, open } = consoleWorld({
    respond: echo,
    pair: { [ADA]: 'owner' },
    files: {
      'memory/MEMORY.md': MEMORY,
      'people/p-0a1b/memory/MEMORY.md': 'Likes tea.\n',
      'secret.md': 'not a note',
    },
  });

  beforeAll(async () => {
    skill = await mkdtemp(join(tmpdir(), 'nanobot-skill-'));
    await mkdir(join(skill, 'brew-tea'));
    await writeFile(join(skill, 'brew-tea/SKILL.md'), SKILL);
  });

  afterAll(async () => {
    if (skill !== undefined) await rm(skill, { recursive: true });
  });

  const press = (page: Page, name: string, within = '.view') =>
    page.locator(within).getByRole('button', { name, exact: true }).click();
  const file = () => readFile(world().file('memory/MEMORY.md'), 'utf8');

  it('edits a note after a look at the difference, and refuses an edit of an old version', async () => {
    await using rig = await open('#/memory');
    const { page, problems } = rig;
    await page.click('.row >> text=memory/MEMORY.md');
    await page.waitForSelector('textarea.note');
    expect(await page.inputValue('textarea.note')).toBe(MEMORY);
    await page.fill('textarea.note', MEMORY.replace('red', 'blue'));
    await press(page, 'Review the change');
    expect(await page.innerText('del')).toBe('- The boat is red.');
    expect(await page.innerText('ins')).toBe('- The boat is blue.');
    expect(await file()).toBe(MEMORY);
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved.');
    expect(await file()).toContain('The boat is blue.');
    await writeFile(world().file('memory/MEMORY.md'), MEMORY.replace('red', 'green'));
    await page.fill('textarea.note', 'mine');
    await press(page, 'Review the change');
    await press(page, 'Save');
    await page.waitForSelector('[role="alert"] >> text=was changed meanwhile');
    expect(await page.inputValue('textarea.note')).toBe('mine');
    expect(await file()).toContain('The boat is green.');
    await press(page, 'Read again');
    await expect.poll(() => page.inputValue('textarea.note')).toContain('green');
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('reviews a skill, adds it, accepts its change and removes it', async () => {
    await using rig = await open('#/memory');
    const { page, problems } = rig;
    await press(page, 'Add a skill');
    await page.fill('[aria-describedby="where-hint"]', join(skill, 'nothing'));
    await press(page, 'Review it');
    await page.waitForSelector('form [role="alert"] >> text=cannot find');
    await page.fill('[aria-describedby="where-hint"]', join(skill, 'brew-tea'));
    await press(page, 'Review it');
    await page.waitForSelector('form h3 >> text=brew-tea');
    await writeFile(join(skill, 'brew-tea/SKILL.md'), `${SKILL}And more.\n`);
    await press(page, 'Add brew-tea');
    await page.waitForSelector('form [role="alert"] >> text=has changed since it was reviewed');
    await press(page, 'Review it');
    await press(page, 'Add brew-tea');
    const card = '[data-skill="brew-tea"]';
    await page.waitForSelector(`${card} .badge >> text=ready`);
    await writeFile(world().file('skills/brew-tea/SKILL.md'), `${SKILL}Run away.\n`);
    await page.reload();
    await page.waitForSelector(`${card} .badge.bad >> text=changed since it was added`);
    await press(page, 'Accept as it is now', card);
    await page.waitForSelector(`${card} .badge >> text=ready`);
    await page.click(`${card} summary`);
    await page.waitForSelector(`${card} pre >> text=Run away.`);
    await press(page, 'Remove…', card);
    await press(page, 'Remove it for good', card);
    await page.waitForSelector(card, { state: 'detached' });
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('switches a skill off and on, and pins it', async () => {
    await using rig = await open('#/memory');
    const { page } = rig;
    const card = '[data-skill="web-research"]';
    const prompt = async (words: string) => {
      await world().asks(ADA, words, new RegExp(words));
      return world().lastBody();
    };
    expect(await prompt('before')).toContain('- web-research:');
    await press(page, 'Switch off', card);
    await page.waitForSelector(`${card} .badge >> text=switched off`);
    expect(await prompt('while off')).not.toContain('web-research');
    await page.click(`${card} summary`);
    await page.waitForSelector(`${card} pre:not(:text("Loading"))`);
    expect(await world().nanobot('skills', 'list')).toMatch(/web-research +shipped +switched off/);
    await world().nanobot('skills', 'enable', 'web-research');
    await page.reload();
    await press(page, 'Pin to every prompt', card);
    await page.waitForSelector(`${card} .badge >> text=in every prompt`);
    expect(await prompt('pinned')).toContain('## web-research');
    await press(page, 'Only when needed', card);
    await page.waitForSelector(`${card} >> text=Pin to every prompt`);
  });

  it('adds a skill from an archive of the device, after a review', async () => {
    const archive = join(skill, 'brew-tea.tar.gz');
    await execute('tar', ['-czf', archive, '-C', skill, 'brew-tea']);
    await using rig = await open('#/memory');
    const { page, problems } = rig;
    await press(page, 'Add a skill');
    await page.setInputFiles('.view [type="file"]', archive);
    await press(page, 'Review it');
    await page.waitForSelector('form h3 >> text=brew-tea');
    await press(page, 'Add brew-tea');
    const card = '[data-skill="brew-tea"]';
    await page.waitForSelector(`${card} >> text=brew-tea.tar.gz`);
    await press(page, 'Remove…', card);
    await press(page, 'Remove it for good', card);
    await page.waitForSelector(card, { state: 'detached' });
    expect(problems).toEqual([]);
  });

  it('leads from what is remembered to the conversation that it is from', async () => {
    const remember = { name: 'remember', arguments: { fact: 'Ada sails on Sundays.' } };
    world().model.script(callTools(remember), say('Noted.'));
    await world().asks(ADA, 'On Sundays I am on the lake', /Noted/);
    await using rig = await open(`#/memory/${encodeURIComponent('memory/MEMORY.md')}`);
    const { page, problems } = rig;
    await page.click('summary >> text=Where it is from');
    await press(page, 'Find the conversation of: Ada sails on Sundays.');
    await page.click(`.runs a >> text=telegram:${ADA}`);
    await page.waitForSelector('.spoken.person >> text=On Sundays I am on the lake');
    expect(problems).toEqual([]);
  });

  it('erases words from notes and conversations for good, after a look at them', async () => {
    await world().asks(ADA, 'the code of my safe is 7391', /7391/);
    await world().asks(ADA, 'something else', /something else/);
    await using rig = await open('#/memory');
    const { page, problems } = rig;
    await page.click('summary >> text=Erase something for good');
    await page.fill('[name="words"]', 'safe 7391');
    await press(page, 'Find it');
    await page.waitForSelector('form li >> text=the code of my safe');
    await press(page, 'Delete for good');
    await page.waitForSelector('[role="status"] >> text=Forgotten:');
    const exported = await world().nanobot('sessions', 'export', `telegram:${ADA}`);
    expect(exported).toContain('something else');
    expect(exported).not.toContain('7391');
    await page.fill('[name="words"]', '7391');
    await press(page, 'Find it');
    await page.waitForSelector('text=Nothing that is kept contains all of these words.');
    const refusals = await Promise.all([
      api('/api/v1/forget', { folder: '../', words: 'a', id: 'x' }),
      api('/api/v1/forget', { folder: '', words: ' ', id: 'x' }),
      api('/api/v1/forget/find', { folder: '', words: 'x' }, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 401]);
    expect(problems).toEqual([]);
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await using screens = await openScreens(world().gateway);
    const note = `#/memory/${encodeURIComponent('memory/MEMORY.md')}`;
    await screens.fit('#/memory', 'memory-list', async (page) => {
      await page.waitForSelector('.cards .card');
    });
    await screens.fit('#/memory', 'memory-erase', async (page) => {
      await page.click('summary >> text=Erase something for good');
      await page.fill('[name="words"]', LONG_WORD);
    });
    await screens.fit('#/memory', 'memory-review', async (page) => {
      await press(page, 'Add a skill');
      await page.fill('[aria-describedby="where-hint"]', join(skill, 'brew-tea'));
      await press(page, 'Review it');
      await page.waitForSelector('form h3');
    });
    await screens.fit(note, 'memory-note', async (page) => {
      await page.fill('textarea.note', LONG_WORD);
      await press(page, 'Review the change');
    });
  });

  it('is a documented API that reaches notes only', async () => {
    const { folders } = noteFolders.parse((await api('/api/v1/memory')).body);
    expect(folders.map(({ folder }) => folder)).toEqual(['', 'people/p-0a1b/']);
    expect(skillList.parse((await api('/api/v1/skills')).body).skills.length).toBeGreaterThan(0);
    const at = (path: string) => `/api/v1/memory/${encodeURIComponent(path)}`;
    const change = { text: 'x', version: 'none' };
    const refusals = await Promise.all([
      api(at('secret.md')),
      api(at('memory/../secret.md')),
      api(at('people/../memory/MEMORY.md')),
      api(at('memory/MEMORY.md'), change),
      api(at('memory/sessions/SESSION_x.md'), change),
      api('/api/v1/skills/none/remove', {}),
      api('/api/v1/memory', undefined, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 400, 409, 400, 404, 401]);
  });
});
