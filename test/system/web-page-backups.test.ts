// Back-ups on the operations page with the whole program behind them: the first one made without a shell,
// scheduled, proved by a start; what fails is said; hostile places; a gateway that is killed meanwhile.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { backupList, backupState } from '../../src/features/backup/rules/views.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  type ApiCall,
  callApi,
  fitsEachScreen,
  HOSTILE,
  LONG_WORD,
  networkIsBack,
  openConsole,
} from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { eventually } from '../support/web-page.ts';

const SLOW = { timeout: 120_000 };

describeInChromium('back-ups on the web page', () => {
  let home: TestHome;
  let gateway: GatewayProcess;
  let folder: string;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    folder = await mkdtemp(join(tmpdir(), 'nanobot-backups-'));
    home = await makeTestHome({ gateway: { port } });
    gateway = await home.start();
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const api = (...call: ApiCall) => callApi(gateway, ...call);
  const open = (options?: BrowserContextOptions) => openConsole(gateway, '#/operations', options);
  const press = (page: Page, name: string) =>
    page.locator('#backups').getByRole('button', { name, exact: true }).click();
  const listed = async () => backupList.parse((await api('/api/v1/backups')).body).backups;
  const says = (page: Page, words: string | RegExp) =>
    page.locator('#backups .said-so').getByText(words).waitFor(SLOW);

  it('makes the first one, says what is wrong with a place, tests one by a start, and follows what fails', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.waitForSelector('text=There is no back-up yet');
    expect(await page.inputValue('[name="to"]')).toBe(`${home.path}-backups`);
    await page.fill('[name="to"]', 'somewhere');
    await press(page, 'Make the first back-up');
    await page.waitForSelector('[role="alert"] >> text=is a folder such as');
    await page.fill('[name="to"]', join(folder, 'place'));
    await press(page, 'Make the first back-up');
    await says(page, /^Back-up \w/);
    await page.waitForSelector('.facts >> text=every day');
    const [made] = await listed();
    const { stdout } = await runNanobot(['backup', 'list'], { home: home.path });
    expect(stdout).toContain(made?.id);
    await page.locator(`[data-backup="${made?.id}"]`).getByRole('button').click();
    await says(page, /is good: a gateway started on it/);
    await page.waitForSelector('#backups .backups >> text=tested');
    await press(page, 'Back up now');
    await expect.poll(async () => (await listed())[0]?.id, SLOW).not.toBe(made?.id);
    // The rule keeps one a day.
    await expect.poll(async () => (await listed()).length).toBe(1);
    const [newer] = await listed();
    await page.waitForSelector(`[data-backup="${newer?.id}"]`);
    expect(await home.logs()).not.toContain('back-up command failed');
    const { stdout: audit } = await runNanobot(['audit', 'show'], { home: home.path });
    expect(audit).toContain(`command=backup verify ${made?.id}`);
    expect(problems).toEqual([]);
  });

  it('encrypts the first one of a place by a passphrase, tests it with that, and says that the disk refuses', async () => {
    const to = join(folder, 'locked');
    const start = (body: object) => api('/api/v1/backups', body);
    expect((await start({ to, every: 'never', passphrase: 'a long secret' })).status).toBe(202);
    expect((await start({})).status).toBe(409);
    await expect.poll(listed, SLOW).toHaveLength(1);
    await using rig = await open();
    const { page } = rig;
    await page.waitForSelector('.facts >> text=only on request');
    await page.locator('#backups .backups').getByRole('button').click();
    await page.locator('#backups .view-problem >> text=The passphrase is needed').waitFor(SLOW);
    await page.click('summary >> text=They are encrypted by a passphrase');
    await page.fill('.field-label [type="password"]', 'a long secret');
    await page.locator('#backups .backups').getByRole('button').click();
    await says(page, /is good: a gateway started on it/);
    expect(await home.logs()).not.toContain('a long secret');
    await writeFile(join(folder, 'a-file'), '');
    await start({ to: join(folder, 'a-file', HOSTILE), passphrase: 'x' });
    await page
      .locator('#backups .view-problem')
      .getByText(/cannot (?:create|be written)/)
      .waitFor(SLOW);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
  });

  it('goes on after the gateway was killed', async () => {
    await using rig = await open();
    const { page } = rig;
    await page.waitForSelector('#backups .backups');
    await gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    gateway = await home.start();
    await networkIsBack(page);
    await eventually(async () =>
      expect(await page.locator('#backups [role="alert"]:visible').count()).toBe(0),
    );
    await press(page, 'Back up now');
    await says(page, /^Back-up \w/);
  });

  it('is a documented API for owners alone', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    const own = Object.keys(paths).filter((path) => path.startsWith('/api/v1/backups'));
    expect(own.sort()).toEqual([
      '/api/v1/backups',
      '/api/v1/backups/events',
      '/api/v1/backups/{id}/verify',
    ]);
    const event = paths['/api/v1/backups/events'].get.responses['200'];
    const { schema } = event.content['text/event-stream'];
    expect(Object.keys(schema.properties)).toEqual(Object.keys(backupState.shape));
    const refusals = await Promise.all([
      api('/api/v1/backups', { to: '-' }),
      api('/api/v1/backups', { to: '--help' }),
      api('/api/v1/backups', { every: 'blue moon' }),
      api('/api/v1/backups', { keep: '--help' }),
      api('/api/v1/backups/--help/verify', {}),
      api('/api/v1/backups', undefined, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 401]);
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    const to = join(folder, `${HOSTILE.replace('/', '')} ${LONG_WORD}`.slice(0, 200));
    await mkdir(to, { recursive: true });
    await api('/api/v1/backups', { to, every: 'week', passphrase: 'a long secret' });
    await expect.poll(async () => (await api('/api/v1/backups')).body.place, SLOW).toBe(to);
    await expect.poll(listed, SLOW).toHaveLength(1);
    await fitsEachScreen(gateway, '#/operations', 'backups', async (page) => {
      await page.waitForSelector('#backups .backups');
      await page.click('summary >> text=Change the place');
      await page.click('summary >> text="More"');
    });
  });
});
