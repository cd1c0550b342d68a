// The operations page and its API with the whole program behind them: dead letters, channels over time,
// the doctor with its fixes, the audit, and a log of 100,000 lines of which only the visible ones are in
// the document; hostile lines; a gateway that is killed and started again.

import { appendFileSync, chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { operationsState } from '../../src/features/health/rules/views.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { withOpenState } from '../../src/kernel/home-state.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  consoleWorld,
  HOSTILE,
  LONG_WORD,
  networkIsBack,
  openScreens,
} from '../support/console-page.ts';
import { eventually } from '../support/web-page.ts';

const ADA = 1001;
const LINES = 100_000;
const SLOW = { timeout: 120_000 };
const DAY_MS = 86_400_000;

const logLine = (index: number) => {
  const level = index % 1000 === 0 ? 'error' : 'info';
  const time = new Date(Date.now() - DAY_MS).toISOString();
  const fields = {
    level,
    time,
    line: index,
    about: index % 7 === 0 ? HOSTILE : LONG_WORD.slice(0, 90),
  };
  return JSON.stringify({ ...fields, msg: index % 5 === 0 ? HOSTILE : 'a fixed text' });
};

describeInChromium('the operations page', () => {
  const { world, api, open } = consoleWorld({
    respond: ({ lastUserText }) => ({ chunks: [`You said: ${lastUserText}`] }),
    pair: { [ADA]: 'owner' },
  });

  const nanobot = async (...args: readonly string[]) =>
    (await runNanobot(args, { home: world().home.path })).stdout;
  /** What an earlier gateway saw in the hours before. */
  const seedDepths = () =>
    withOpenState(homeOf({ NANOBOT_HOME: world().home.path }), systemClock, async ({ store }) => {
      const now = Date.now();
      const depths = Array.from({ length: 60 }, (_, index) => {
        const at = now - (now % 300_000) - (60 - index) * 300_000;
        return { at, toAnswer: index % 7, toSend: index % 3 };
      });
      await store.scope('outages').set('queues', JSON.stringify(depths));
    });
  const card = (page: Page, name: string) => page.locator(`section[aria-label="${name}"]`);

  it('shows version, queues and channels over time, live', async () => {
    await using rig = await open('#/operations');
    const { page, problems } = rig;
    await page.waitForSelector('[data-channel="telegram"] .health-bar rect');
    await card(page, 'Channels').getByText('Telegram', { exact: true }).waitFor();
    await card(page, 'Gateway').getByText('0 waiting, 0 being answered, 0 to send').waitFor();
    world().telegram.say(ADA, 'Hello');
    await world().hears(ADA, /^You said/);
    expect(problems).toEqual([]);
  });

  it('runs the checks of the doctor, and fixes what one found with a button', async () => {
    const config = join(world().home.path, 'config.json');
    chmodSync(config, 0o644);
    await using rig = await open('#/operations');
    const { page } = rig;
    await card(page, 'Check-up').getByRole('button', { name: 'Check now' }).click();
    const row = page.locator('[data-check="permissions"]').first();
    await row.getByText('other users can read').waitFor(SLOW);
    await row.getByText(`The fix: make ${config} private`).waitFor();
    await row.getByRole('button', { name: 'Fix' }).click();
    await row.waitFor({ state: 'detached', ...SLOW });
    expect(statSync(config).mode & 0o777).toBe(0o600);
  });

  it('shows the audit and verifies it, also one that somebody changed', async () => {
    await using rig = await open('#/operations');
    const { page } = rig;
    await page.click('.tabs >> text=Audit');
    await page.waitForSelector('.log-row >> text=doctor --fix --only permissions');
    await page.click('text=Verify all entries');
    await page.waitForSelector('[role="status"] >> text=entries, all unchanged');
    appendFileSync(join(world().home.path, 'audit.jsonl'), `${HOSTILE}\n`);
    await page.click('text=Verify all entries');
    await page.waitForSelector('[role="alert"] >> text=this is no entry');
    expect(await page.evaluate('window.pwned')).toBeUndefined();
  });

  it('keeps a log of 100,000 lines out of the document but for the visible ones, and filters it', async () => {
    const day = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
    const folder = join(world().home.path, 'logs');
    mkdirSync(folder, { recursive: true });
    const lines = Array.from({ length: LINES }, (_, index) => logLine(index));
    writeFileSync(join(folder, `nanobot.${day}.log`), `${HOSTILE}\n${lines.join('\n')}\n`);
    await using rig = await open('#/operations/log');
    const { page, problems } = rig;
    await page
      .locator('.log')
      .getByText(/^100,0\d\d of 100,0\d\d lines$/)
      .waitFor(SLOW);
    const rows = () => page.locator('.log-row').count();
    expect(await rows()).toBeLessThan(60);
    const nodes = 'document.querySelectorAll(".log *").length';
    expect(await page.evaluate(nodes)).toBeLessThan(600);
    await page.evaluate('document.querySelector(".line-window").scrollTop = 1_000_000');
    await page.locator('.log-row').getByText(HOSTILE.slice(0, 20)).first().waitFor();
    expect(await rows()).toBeLessThan(60);
    await page.selectOption('.log-filter select', { label: 'error' });
    await page
      .locator('.log')
      .getByText(/^\d{2,3} of 100,0\d\d lines$/)
      .waitFor();
    await page.selectOption('.log-filter select', { label: 'debug' });
    await page.fill('.log-filter input', '"LINE":4321,');
    await page
      .locator('.log')
      .getByText(/^1 of 100,0\d\d lines$/)
      .waitFor();
    await page.locator('.log-row').first().click();
    await page.waitForSelector('.log pre >> text="line": 4321');
    await page.fill('.log-filter input', 'gateway started');
    await world().gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    await seedDepths();
    await world().restart();
    await networkIsBack(page);
    await eventually(async () => expect(await page.isHidden('.log .view-problem')).toBe(true));
    await page
      .locator('.log')
      .getByText(/of 100,0\d\d lines$/)
      .waitFor(SLOW);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('retries and deletes messages that were set aside, as nanobot dead does', async () => {
    await using rig = await open('#/operations');
    const { page } = rig;
    await page.waitForSelector('[data-channel="telegram"]');
    expect(await card(page, 'Messages set aside').count()).toBe(0);
    world().telegram.block(ADA);
    world().telegram.say(ADA, `Say ${HOSTILE}`);
    const aside = card(page, 'Messages set aside');
    await aside.getByText('not delivered').first().waitFor(SLOW);
    const [first] = JSON.parse(await nanobot('dead', 'list', '--json'));
    const row = page.locator(`[data-dead="${first.id}"]`);
    await row.getByText(HOSTILE.slice(0, 20)).waitFor();
    await aside.getByRole('button', { name: 'Delete all…' }).click();
    await aside.getByRole('button', { name: 'Keep' }).click();
    world().telegram.unblock(ADA);
    await aside.getByRole('button', { name: 'Retry all' }).click();
    await world().hears(ADA, /^You said: Say /);
    await aside.waitFor({ state: 'detached' });
    expect(JSON.parse(await nanobot('dead', 'list', '--json'))).toEqual([]);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await api('/api/v1/doctor', {});
    await using screens = await openScreens(world().gateway);
    const newest = { version: '99.0.0', homepage: 'https://example.org/', at: Date.now() };
    writeFileSync(join(world().home.path, 'newest-version.json'), JSON.stringify(newest));
    await nanobot('config', 'set', 'update.check', 'daily');
    await screens.fit('#/operations', 'operations', async (page) => {
      const gateway = card(page, 'Gateway');
      await gateway.getByText('Version 99.0.0 is available.').waitFor();
      await gateway.getByRole('img', { name: 'At most 6 messages waited' }).waitFor();
      await page.waitForSelector('.uplot canvas');
      await page.locator('summary >> text=Fine:').waitFor(SLOW);
    });
    await screens.fit('#/operations/log', 'operations-log', async (page) => {
      await page
        .locator('.log')
        .getByText(/of 100,0\d\d lines$/)
        .waitFor(SLOW);
      await page.locator('.log-row').last().click();
    });
    await screens.fit('#/operations/audit', 'operations-audit', async (page) => {
      await page.waitForSelector('.log-row');
    });
  });

  it('is a documented API for owners alone', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    const event = paths['/api/v1/operations/events'].get.responses['200'];
    const { schema } = event.content['text/event-stream'];
    expect(Object.keys(schema.properties)).toEqual(Object.keys(operationsState.shape));
    const none = { authorization: 'Bearer none' };
    const refusals = await Promise.all([
      api('/api/v1/dead/drop', {}),
      api('/api/v1/dead/retry', { ids: [] }),
      api('/api/v1/doctor/fix', { check: '--live' }),
      api('/api/v1/audit', undefined, none),
      api('/api/v1/logs/events', undefined, none),
      api('/api/v1/doctor', {}, none),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 400, 401, 401, 401]);
    expect((await api('/api/v1/dead/retry', { ids: ['none'] })).body).toEqual({ count: 0 });
  });
});
