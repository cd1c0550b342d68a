// The inbox of the web page with 10,000 conversations: the document holds only the rows in view, wherever
// the list is scrolled; and one conversation in two browsers at once.

import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { sessionList } from '../../src/features/conversations/rules/views.ts';
import { describeInChromium } from '../support/chromium.ts';
import { callApi, consoleWorld, SCREENS } from '../support/console-page.ts';
import { echo } from '../support/llm-server.ts';
import { eventually } from '../support/web-page.ts';

const ADA = 1001;
const BOB = 1002;
const CONVERSATIONS = 10_000;
const FIRST_CHAT = 5_000_000;
const NEWEST_AT = Date.UTC(2026, 0, 31) / 1000;
/** A screen of rows, those to spare around it, and a few for the page around the list. */
const MOST_ROWS = 60;
const MOST_NODES = 1500;

/** The newest has the lowest number. */
async function writeConversation(folder: string, number: number): Promise<void> {
  const key = `telegram:${FIRST_CHAT + number}`;
  const at = new Date((NEWEST_AT - number * 60) * 1000).toISOString();
  const header = {
    _type: 'metadata',
    session_key: key,
    created_at: at,
    updated_at: at,
    metadata: {},
  };
  const entry = { role: 'user', content: `hello ${number}`, timestamp: at, turn_id: `${key}#1` };
  const path = join(folder, `${key.replace(':', '%3A')}_2026-01-31.jsonl`);
  await writeFile(path, `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`);
  await utimes(path, NEWEST_AT - number * 60, NEWEST_AT - number * 60);
}

describeInChromium('the inbox with 10,000 conversations', () => {
  const { world, open } = consoleWorld({
    respond: echo,
    pair: { [ADA]: 'owner', [BOB]: 'guest' },
  });

  beforeAll(async () => {
    const folder = join(world().home.path, 'sessions');
    await mkdir(folder, { recursive: true });
    for (let from = 0; from < CONVERSATIONS; from += 100) {
      const some = Array.from({ length: 100 }, (_, index) => from + index);
      await Promise.all(some.map((number) => writeConversation(folder, number)));
    }
  });

  const rows = (page: Page) => page.locator('.window [aria-posinset]');
  const scrollTo = (page: Page, share: number) =>
    page.evaluate(`{ const place = document.querySelector('#console');
      place.scrollTop = ${share} * (place.scrollHeight - place.clientHeight); }`);
  const nodes = (page: Page) => page.evaluate('document.querySelectorAll("*").length');

  it('keeps only the rows in view in the document, and reads the others page by page', async () => {
    for (const { viewport } of SCREENS) {
      await using rig = await open('#/sessions', { viewport });
      const { page, problems } = rig;
      await page.waitForSelector(`.rows >> text=telegram:${FIRST_CHAT}`);
      for (const share of [0, 0.25, 0.5, 0.999, 1]) {
        await scrollTo(page, share);
        const about = Math.floor(share * CONVERSATIONS);
        await eventually(async () => {
          const places = await rows(page).evaluateAll((all) =>
            all.map((row) => Number(row.getAttribute('aria-posinset'))),
          );
          expect(Math.min(...places) - 100).toBeLessThan(about);
          expect(Math.max(...places) + 100).toBeGreaterThan(about);
          expect(await page.locator('.window .row:not(a)').count()).toBe(0);
        });
        expect(await rows(page).count()).toBeLessThan(MOST_ROWS);
        expect(await nodes(page)).toBeLessThan(MOST_NODES);
      }
      await page.waitForSelector(`.rows >> text=telegram:${FIRST_CHAT + CONVERSATIONS - 1}`);
      expect(problems).toEqual([]);
    }
  });

  it('goes from row to row by the tab key beyond what was in the document', async () => {
    await using rig = await open('#/sessions');
    const { page } = rig;
    await page.waitForSelector(`.rows >> text=telegram:${FIRST_CHAT}`);
    const place = `Number(document.activeElement.closest('li')?.ariaPosInSet ?? 0)`;
    // Nobody presses faster than rows are drawn.
    const drawn = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))';
    for (let presses = 0; presses < 90; presses += 1) {
      await page.keyboard.press('Tab');
      await page.evaluate(drawn);
    }
    expect(await page.evaluate(place)).toBeGreaterThan(80);
  });

  it('lists them page by page over the API', async () => {
    const list = async (path: string) =>
      sessionList.parse((await callApi(world().gateway, `/api/v1/sessions${path}`)).body);
    expect((await list('')).total).toBeGreaterThanOrEqual(CONVERSATIONS);
    const { sessions } = await list('/from/9900');
    const keys = sessions.map(({ key }) => key);
    expect(keys).toContain(`telegram:${FIRST_CHAT + 9950}`);
    expect((await list('/from/20000')).sessions).toEqual([]);
  });

  it('shows one conversation in two browsers, each with what the other did', async () => {
    await world().asks(BOB, 'hello', /hello/);
    const hash = `#/sessions/telegram:${BOB}`;
    await using one = await open(hash);
    await using two = await open(hash);
    await one.page.click('text=Take over');
    for (const [{ page }, text] of [
      [one, 'from the desk'],
      [two, 'from the phone'],
    ] as const) {
      await page.fill('.own-answer textarea', text);
      await page.click('.own-answer >> text=Send');
      await world().hears(BOB, new RegExp(text));
    }
    for (const { page } of [one, two]) {
      await page.waitForSelector('.spoken.owner >> text=from the desk');
      await page.waitForSelector('.spoken.owner >> text=from the phone');
    }
    await two.page.click('text=Hand back to the agent');
    await one.page.waitForSelector('text=Take over');
    expect(
      world()
        .texts(BOB)
        .filter((text) => text.startsWith('from the')),
    ).toHaveLength(2);
  });
});
