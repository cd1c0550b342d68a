// From an empty home to a working agent by the browser alone: a model connected, Telegram paired, the first
// answer, a daily reminder, the cost, a back-up. The clicks are counted; docs/get-started.md names them.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { chromium, describeInChromium } from '../support/chromium.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { say, startLlmServer } from '../support/llm-server.ts';

const ADA = 1001;
const GUIDE = join(import.meta.dirname, '../../docs/get-started.md');

/** Those of the README, below `NANOBOT_SCREENSHOTS` where that is set. */
async function takePictures(page: Page): Promise<void> {
  const shots = process.env['NANOBOT_SCREENSHOTS'];
  if (shots === undefined) return;
  const { origin } = new URL(page.url());
  const take = async (view: string, name: string, size: { width: number; height: number }) => {
    await page.setViewportSize(size);
    await page.goto(`${origin}/#/${view}`);
    await page.waitForSelector('.view :is(.card, .rows li, .turn)');
    await page.waitForLoadState('networkidle', { timeout: 2000 }).catch(() => undefined);
    if (name === 'console-inbox') {
      await page.click('.turn summary');
      await page.waitForSelector('.timeline li');
    }
    await page.screenshot({ path: `${shots}/${name}.png` });
  };
  const desktop = { width: 1100, height: 720 };
  for (const view of ['memory', 'people', 'schedules', 'usage', 'operations', 'setup']) {
    await take(view, `console-${view}`, desktop);
  }
  await take(`sessions/telegram:${ADA}`, 'console-inbox', desktop);
  await take('schedules', 'console-phone', { width: 390, height: 760 });
}

describeInChromium('the walk by browser alone', () => {
  it('model, Telegram, a reminder, the cost and a back-up need no shell, and as many clicks as the guide says', async () => {
    await using telegram = await startBotApi();
    await using model = await startLlmServer({ respond: () => say('Hello Ada') });
    // Only where the simulated services are.
    await using home = await makeTestHome({
      gateway: { port: 0 },
      providers: { anthropic: { apiBase: model.url } },
      channels: { telegram: { apiRoot: telegram.apiRoot } },
    });
    const gateway = await home.start();
    const backups = await mkdtemp(join(tmpdir(), 'nanobot-walk-'));
    const page = await chromium().newPage();
    let clicks = 0;
    const click = async (selector: string) => {
      clicks += 1;
      await page.click(selector);
    };
    try {
      await page.goto(gateway.link);
      await page.waitForSelector('.welcome');

      await page.waitForSelector('.notice >> text=not an AI model');
      await click('form[aria-label="A provider, with an API key"] input[name=apiKey]');
      await page.keyboard.type('sk-ant-key-of-the-walk');
      await click('form[aria-label="A provider, with an API key"] button[type=submit]');
      await page.waitForSelector('.welcome [role=status] >> text=/is connected/');
      await page.waitForSelector('#text:focus');
      await page.keyboard.type('Hi');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.said .agent >> text=Hello Ada');

      await click('#pages a[href="#/setup"]');
      const card = '[data-channel="telegram"]';
      await click(`${card} button`);
      await page.waitForSelector(`${card} input:focus`);
      await page.keyboard.type(telegram.token);
      await click(`${card} button[type=submit]`);
      const link = (await page.getAttribute(`${card} .phone-link a`, 'href')) ?? '';
      await page.waitForSelector(`${card} .channel-state >> text=/On as @/`);
      telegram.say(ADA, `/start ${new URL(link).searchParams.get('start')}`);
      await page.waitForSelector(`${card} >> text=/Paired with/`);
      await click(`${card} button >> text=Done`);
      telegram.say(ADA, 'Good morning');
      await telegram.waitFor(() =>
        telegram.chat(ADA).messages.find(({ text }) => text === 'Hello Ada'),
      );

      await click('#pages a[href="#/schedules"]');
      await click('button >> text=New schedule');
      await page.waitForSelector('input[name=when]:focus');
      await page.keyboard.type('0 8 * * *');
      await click('textarea[name=text]');
      await page.keyboard.type('Drink water');
      await click('form[aria-label="New schedule"] button[type=submit]');
      await page.waitForSelector('.card >> text=Drink water');

      await click('#pages a[href="#/usage"]');
      await page.waitForSelector('section[aria-label="The last 30 days"]');

      await click('#pages a[href="#/operations"]');
      await click('input[name=to]');
      await page.keyboard.type(backups);
      await click('button >> text=Make the first back-up');
      await page.waitForSelector('summary >> text=/Kept: 1/');
      await takePictures(page);
    } finally {
      await page.close();
      await rm(backups, { recursive: true, force: true });
    }
    expect(telegram.violations).toEqual([]);
    expect(readFileSync(GUIDE, 'utf8')).toContain(`${clicks} clicks`);
  });
});
