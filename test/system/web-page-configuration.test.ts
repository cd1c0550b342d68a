// The configuration on the web page: searched, changed with the difference shown before it is saved, mistakes
// named at their field, an edit of the file made meanwhile, secrets that are never sent to the browser.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { shownConfiguration } from '../../src/features/configuration/rules/views.ts';
import { writeAtomic } from '../../src/lib/files/files.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  consoleWorld,
  HOSTILE,
  LONG_WORD,
  openConsole,
  openScreens,
  reconnects,
} from '../support/console-page.ts';
import { MODEL_KEY } from '../support/telegram-world.ts';

const KEY = 'sk-very-secret-9f8e7d6c';
const SERVER_KEY = 'Zq81-server-key-77';
const HASH = '#/configuration';

describeInChromium('the configuration on the web page', () => {
  let path: string;

  const { world, api } = consoleWorld({
    config: {
      providers: { groq: { apiKey: KEY } },
      backup: { s3: { region: HOSTILE, endpoint: LONG_WORD } },
      mcpServers: {
        notes: { enabled: false, command: 'notes', args: ['--api-key', SERVER_KEY] },
      },
    },
  });

  beforeAll(async () => {
    path = join(world().home.path, 'config.json');
  });

  const open = (options?: BrowserContextOptions) => openConsole(world().gateway, HASH, options);
  const written = async () => JSON.parse(await readFile(path, 'utf8'));
  const edit = async (change: (config: Record<string, never>) => object) =>
    writeAtomic(path, JSON.stringify({ ...(await written()), ...change(await written()) }));

  const press = (page: Page, name: string) =>
    page.locator('.view').getByRole('button', { name, exact: true }).click();
  const search = (page: Page, words: string) => page.fill('.view [type="search"]', words);
  const field = (setting: string) => `[data-setting="${setting}"]`;
  const set = async (page: Page, setting: string, value: string) => {
    const control = page.locator(`${field(setting)} .setting-value > :is(input, textarea, select)`);
    const tag = await control.evaluate((one) => one.tagName);
    if (tag === 'SELECT') await control.selectOption(value);
    else await control.fill(value);
    await control.blur();
  };

  it('finds settings by name and description, and those that are changed', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.waitForSelector('[data-section="agents"]');
    expect(await page.locator('[data-setting]').count()).toBe(0);
    await page.click('[data-section="queue"] > summary');
    await page.waitForSelector(field('queue.mode'));
    expect(await page.innerText(field('queue.mode'))).toContain('Default: steer.');
    await search(page, 'quote original');
    await expect
      .poll(() => page.locator('[data-setting]').evaluateAll((all) => all.length))
      .toBe(1);
    await search(page, '');
    await page.check('[type="checkbox"]');
    await page.waitForSelector(field('providers.groq.apiKey'));
    expect(await page.locator(field('queue.mode')).count()).toBe(0);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('shows a mistake at its field, then what changes, then saves it', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await search(page, 'retry');
    await set(page, 'retry.providerMinSecs', '50');
    await press(page, 'Review the changes');
    await page.waitForSelector(`${field('retry.providerMinSecs')} .problem`);
    expect(await page.innerText(`${field('retry.providerMinSecs')} .problem`)).toContain(
      '50 is greater than retry.providerMaxSecs (30). Use 30 or less.',
    );
    expect(await written()).not.toHaveProperty('retry');
    await set(page, 'retry.providerMinSecs', '2');
    await search(page, 'queue.mode');
    await set(page, 'queue.mode', 'collect');
    await search(page, 'telegram.groupNames');
    await set(page, 'channels.telegram.groupNames', `robot\n${'n'.repeat(60)}`);
    await press(page, 'Review the changes');
    await page.waitForSelector('.difference');
    expect(await page.locator('.difference code').allInnerTexts()).toEqual(
      expect.arrayContaining([
        'retry.providerMinSecs',
        'queue.mode',
        'channels.telegram.groupNames',
      ]),
    );
    expect(await written()).not.toHaveProperty('queue');
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved. The channel restarts.');
    expect(await written()).toMatchObject({
      retry: { providerMinSecs: 2 },
      queue: { mode: 'collect' },
      channels: { telegram: { groupNames: ['robot', 'n'.repeat(60)] } },
    });
    await search(page, 'queue.mode');
    await press(page, 'Use the default of queue.mode');
    await press(page, 'Review the changes');
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=from the next message');
    expect(await written()).not.toHaveProperty('queue');
    expect(problems).toEqual([]);
  });

  it('never sends a secret to the browser; replaces, keeps and clears it', async () => {
    await using rig = await open();
    const { page } = rig;
    const received: string[] = [];
    page.on('response', async (response) => {
      received.push(await response.text().catch(() => ''));
    });
    await search(page, 'groq.apiKey');
    const secret = field('providers.groq.apiKey');
    await page.waitForSelector(`${secret} >> text=Set`);
    await page.click(`${secret} >> text=Replace`);
    await page.fill(`${secret} input`, 'sk-another-1a2b3c4d');
    await page.locator(`${secret} input`).blur();
    await page.waitForSelector(`${secret} >> text=A new secret, not saved yet.`);
    expect(await page.inputValue('.config-file textarea')).not.toContain('sk-another');
    await search(page, 'mcpServers.notes.args');
    await set(page, 'mcpServers.notes.args', '--verbose\n--api-key\n[redacted]');
    await press(page, 'Review the changes');
    await page.waitForSelector('text=Another secret');
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved.');
    expect(await written()).toMatchObject({
      providers: { groq: { apiKey: 'sk-another-1a2b3c4d' } },
      mcpServers: { notes: { args: ['--verbose', '--api-key', SERVER_KEY] } },
    });
    await search(page, 'groq.apiKey');
    await page.click(`${secret} >> text=Clear`);
    await page.waitForSelector(`${secret} >> text=Not set`);
    await press(page, 'Review the changes');
    await press(page, 'Save');
    await expect.poll(written).not.toHaveProperty('providers.groq');
    const { body } = await api('/api/v1/configuration');
    received.push(JSON.stringify(body));
    for (const secretValue of [KEY, SERVER_KEY, 'sk-another-1a2b3c4d', MODEL_KEY])
      expect(received.filter((text) => text.includes(secretValue))).toEqual([]);
  });

  it('edits the JSON beside the form: mistakes by their line, secrets kept, an edit elsewhere kept', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const before = await readFile(path, 'utf8');
    const file = page.locator('.config-file textarea');
    const shown = await file.inputValue();
    expect(shown).toContain('[redacted]');
    await file.fill(shown.replace('{', '{ "agents": '));
    await press(page, 'Review the changes');
    await page.waitForSelector('.view-problem >> text=/line 1|line 2/');
    const edited = shown.replace('{', '{\n  "queue": { "mode": "steeer" },');
    await file.fill(edited);
    await press(page, 'Review the changes');
    await page.waitForSelector('.view-problem >> text=/\\(line 2\\).*Did you mean "steer"/');
    expect(
      await file.evaluate((one: HTMLTextAreaElement) =>
        one.value.slice(one.selectionStart, one.selectionEnd),
      ),
    ).toContain('steeer');
    await file.fill(edited.replace('steeer', 'steer'));
    await search(page, 'queue.mode');
    expect(await page.inputValue(`${field('queue.mode')} select`)).toBe('steer');
    expect(await page.isDisabled(`${field('queue.mode')} select`)).toBe(true);
    await edit(() => ({ logging: { keepDays: 8 } }));
    await page.waitForSelector('text=config.json was changed elsewhere');
    await press(page, 'Keep my changes on top of it');
    await press(page, 'Review the changes');
    await expect
      .poll(() => page.locator('.difference code').allInnerTexts())
      .toEqual(['queue.mode']);
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved.');
    expect(await written()).toMatchObject({
      queue: { mode: 'steer' },
      logging: { keepDays: 8 },
      mcpServers: { notes: { args: ['--verbose', '--api-key', SERVER_KEY] } },
    });
    await writeAtomic(path, before);
    await expect.poll(() => file.inputValue()).toBe(shown);
    expect(problems).toEqual([]);
  });

  it('shows an edit of the file made meanwhile beside the changes that are not saved', async () => {
    await using rig = await open();
    const { page } = rig;
    await search(page, 'queue.mode');
    await set(page, 'queue.mode', 'followup');
    await edit(() => ({ queue: { mode: 'interrupt' }, logging: { level: 'debug' } }));
    await page.waitForSelector('text=config.json was changed elsewhere');
    expect(await page.innerText('[aria-labelledby="conflict"]')).toMatch(
      /queue[\s\S]*interrupt[\s\S]*Yours: "followup"[\s\S]*logging[\s\S]*debug/,
    );
    await press(page, 'Keep my changes on top of it');
    await press(page, 'Review the changes');
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved.');
    expect(await written()).toMatchObject({
      queue: { mode: 'followup' },
      logging: { level: 'debug' },
    });
  });

  it('shows a file with mistakes, and stays while the gateway is killed and started again', async () => {
    await using rig = await open();
    const { page } = rig;
    await search(page, 'queue.mode');
    const good = await readFile(path, 'utf8');
    await writeAtomic(path, good.replace('"followup"', '"folowup"'));
    await page.waitForSelector('.view-problem >> text=Did you mean');
    await writeAtomic(path, '{ "queue": ');
    await page.waitForSelector('.view-problem >> text=not valid JSON');
    expect(await page.isDisabled(`${field('queue.mode')} select`)).toBe(true);
    await writeAtomic(path, good);
    await set(page, 'queue.mode', 'collect');
    await reconnects(page, '/configuration/events', world().restart);
    await press(page, 'Review the changes');
    await press(page, 'Save');
    await page.waitForSelector('[role="status"] >> text=Saved.');
    expect(await written()).toMatchObject({ queue: { mode: 'collect' } });
  });

  it('undoes a change, also one that was made in an editor', async () => {
    const before = await written();
    await using rig = await open();
    const { page } = rig;
    await edit(() => ({ logging: { level: 'warn', keepDays: 9 } }));
    await expect.poll(() => page.inputValue('.config-file textarea')).toContain('"keepDays": 9');
    await page.click('summary >> text=History');
    await page.waitForSelector('.config-version >> text=Changed: logging');
    await press(page, 'Undo the last change');
    await page.waitForSelector('[role="status"] >> text=in force again');
    expect(await written()).toEqual(before);
    await expect
      .poll(() => page.locator('.config-version').first().innerText())
      .toMatch(/now[\s\S]*Changed: logging/);
    const { versions } = (await api('/api/v1/configuration/history')).body;
    expect(JSON.stringify(versions)).not.toContain(KEY);
    const [current, other] = versions;
    expect(current.isCurrent).toBe(true);
    const stale = { id: other.id, version: 'old' };
    expect((await api('/api/v1/configuration/restore', stale)).status).toBe(409);
    const { version } = (await api('/api/v1/configuration')).body;
    const none = { id: '../config', version };
    expect((await api('/api/v1/configuration/restore', none)).status).toBe(404);
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await using screens = await openScreens(world().gateway);
    await screens.fit(HASH, 'configuration-search', async (page) => {
      await search(page, 'disabled');
      await page.waitForSelector(field('tools.disabled'));
      await page.click('summary >> text=History');
      await page.locator('.config-version summary').first().click();
    });
    await screens.fit(HASH, 'configuration', async (page) => {
      await search(page, '');
      await page.click('[data-section="channels"] > summary');
      await page.click('[data-section="channels.telegram"] > summary');
      await set(page, 'channels.telegram.allowFrom', '700123\n700124');
    });
    await screens.fit(HASH, 'configuration-review', async (page) => {
      await search(page, 's3');
      await set(page, 'backup.s3.region', `${HOSTILE}${LONG_WORD}`);
      await press(page, 'Review the changes');
      await page.waitForSelector('.difference');
    });
  });

  it('is a documented API that refuses what is no setting and what others may not do', async () => {
    const { body } = await api('/api/v1/configuration');
    const { version } = shownConfiguration.parse(body);
    const change = (path: string, value?: unknown) => ({
      version,
      changes: [{ path, ...(value === undefined ? {} : { value }) }],
    });
    const at = '/api/v1/configuration';
    const refusals = await Promise.all([
      api(at, change('queue.mod', 'steer')),
      api(at, change('queue.__proto__.mode', 'steer')),
      api(at, change('queue..mode', 'steer')),
      api(at, { ...change('queue.mode', 'steer'), version: 'old' }),
      api(at, change('gateway.token', '[redacted]')),
      api(at, undefined, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([422, 400, 400, 409, 422, 401]);
    expect(refusals[0]?.body.error.message).toContain('Did you mean queue.mode?');
  });
});
