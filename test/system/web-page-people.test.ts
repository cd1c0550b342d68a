// People on the web page: who waits and what waits for an approval, decided by a press; the allow rules;
// roles, limits and linked accounts; hostile names and texts that stay text.

import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { ruleList } from '../../src/features/approvals/rules/views.ts';
import { peopleView } from '../../src/features/people/rules/views.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  consoleWorld,
  HOSTILE,
  LONG_WORD,
  networkIsBack,
  openConsole,
  openScreens,
} from '../support/console-page.ts';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';

const OWNER = 700;
const BEN = 701;
const ANN = 703;
const EVE = { id: 666, first_name: `Eve ${HOSTILE}` };
const MALLORY = { id: 667, first_name: 'Mallory' };
/** A text that turns the direction is left out. */
const SHOWN = HOSTILE.replace('\u202E', '');
const RUN = /RUN (\{.*\})/s;
const HASH = '#/people';

/** Runs what the newest text says. */
function obey({ lastUserText, toolResults }: LlmRequest): LlmReply {
  const result = toolResults.at(-1)?.text;
  const order = RUN.exec(lastUserText)?.[1];
  const isAllowed = lastUserText.startsWith('[An owner allowed');
  if (!isAllowed && result !== undefined) return { chunks: [`Result: ${result}`] };
  if (isAllowed || order === undefined) return { chunks: [`Seen: ${lastUserText}`] };
  return { toolCalls: [{ name: 'exec', arguments: JSON.parse(order) }] };
}

describeInChromium('people on the web page', () => {
  const { world, api } = consoleWorld({
    respond: obey,
    config: { tools: { approvals: { owner: 'strict' } } },
    pair: { [OWNER]: 'owner', [BEN]: 'trusted' },
  });

  beforeAll(async () => {
    world().telegram.say(BEN, 'hello');
    await world().hears(BEN, /^Seen/);
  });

  const people = async () => peopleView.parse((await api('/api/v1/people')).body);
  const open = (options?: BrowserContextOptions) => openConsole(world().gateway, HASH, options);
  const press = (page: Page, name: string, within = '.view') =>
    page.locator(within).getByRole('button', { name, exact: true }).click();
  const idOf = async (telegram: number) =>
    (await people()).persons.find(({ channels }) =>
      channels.some(({ ids }) => ids.includes(`${telegram}`)),
    )?.id ?? '';
  const asks = (words: string) =>
    world().telegram.say(OWNER, `RUN ${JSON.stringify({ argv: ['echo', words] })}`);

  it('shows an unknown sender when they write, as text, and lets them in by a press', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.waitForSelector('text=Nobody is waiting.');
    world().telegram.say(EVE, `Let me in ${HOSTILE} **now**`);
    await page.waitForSelector('[data-sender="666"]');
    const shown = await page.innerText('[data-sender="666"]');
    for (const part of [`Eve ${SHOWN}`, 'telegram', '666', `Let me in ${SHOWN} **now**`])
      expect(shown).toContain(part);
    await page.waitForSelector('#pages .news[aria-label="People: 1 waiting for you"]');
    await press(page, 'Allow');
    await page.waitForSelector('[role="status"] >> text=from now on');
    await page.waitForSelector('[data-sender]', { state: 'detached' });
    await page.waitForSelector('#pages .news', { state: 'detached' });
    await world().hears(EVE.id, /^Seen: .*Let me in/s);
    await page.waitForSelector('[data-person] .badge >> text=trusted');
    expect(await page.locator('.view img').count()).toBe(0);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('lets somebody in by their id before they write, and undoes it', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const form = '[aria-labelledby="let-in"]';
    await page.selectOption(`${form} [name="channel"]`, 'telegram');
    await page.fill(`${form} [name="userId"]`, '@ann');
    await press(page, 'Save', `form${form}`);
    await page.waitForSelector('[role="alert"] >> text=Telegram ids are numbers');
    await page.fill(`${form} [name="userId"]`, ` ${ANN} `);
    await press(page, 'Save', `form${form}`);
    await page.waitForSelector(`[data-admission="${ANN}"] .badge >> text=trusted`);
    expect(await page.inputValue(`${form} [name="userId"]`)).toBe('');
    world().telegram.say(ANN, 'I was let in');
    await world().hears(ANN, /^Seen: .*I was let in/s);
    await page.waitForSelector(`[data-admission="${ANN}"]`, { state: 'detached' });
    await page.fill(`${form} [name="userId"]`, '704');
    await press(page, 'Save', `form${form}`);
    await press(page, 'Undo for 704');
    await page.waitForSelector('[role="status"] >> text=Undone');
    await page.waitForSelector('[data-admission="704"]', { state: 'detached' });
    expect(problems).toEqual([]);
  });

  it('is decided about with the keyboard alone, and says when somebody else was faster', async () => {
    await using rig = await open();
    const { page } = rig;
    world().telegram.say(MALLORY, 'Me too');
    await page.waitForSelector('[data-sender="667"]');
    await page.locator('[data-sender="667"] button').first().focus();
    for (const _step of [1, 2]) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[role="status"] >> text=Blocked');
    await page.waitForSelector('[role="status"]:focus');
    const late = { channel: 'telegram', userId: '667', action: 'allow' };
    expect((await api('/api/v1/people/unknown-senders', late)).status).toBe(404);
  });

  it('answers what waits for an approval, and shows and revokes the allow rule', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    asks(`page ${HOSTILE}`);
    await page.locator('[data-question]').getByText('<img src=x onerror=').waitFor();
    await press(page, 'Always allow', '[data-question]');
    await page.waitForSelector('[role="status"] >> text=/Allowed/');
    await page.waitForSelector('[data-rule]');
    expect(await page.innerText('[data-rule]')).toMatch(/exec[\s\S]*echo[\s\S]*when it is revoked/);
    await press(page, 'Revoke', '[data-rule]');
    await page.waitForSelector('[role="status"] >> text=Allow rule revoked.');
    await page.waitForSelector('[data-rule]', { state: 'detached' });
    expect(ruleList.parse((await api('/api/v1/approvals/rules')).body).rules).toEqual([]);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('changes role, limits and approvals of a person, and names a value that cannot be', async () => {
    const id = await idOf(BEN);
    await using rig = await open();
    const { page } = rig;
    const card = `[data-person="${id}"]`;
    await page.click(`${card} > summary`);
    await page.fill(`${card} [name="timezone"]`, 'Middle-earth');
    await press(page, 'Save', card);
    await page.waitForSelector('[role="alert"] >> text=Unknown time zone Middle-earth');
    await page.fill(`${card} [name="timezone"]`, 'Europe/Berlin');
    await page.fill(`${card} [name="messagesPerDay"]`, '50');
    await page.selectOption(`${card} [name="approvals"]`, 'strict');
    await press(page, 'Save', card);
    await page.waitForSelector('[role="status"] >> text=Changed.');
    await expect
      .poll(async () => (await people()).persons.find((one) => one.id === id))
      .toMatchObject({ timeZone: 'Europe/Berlin', limits: { perDay: 50 }, approvals: 'strict' });
    await page.selectOption(`${card} [name="role"]`, 'guest');
    await page.fill(`${card} [name="messagesPerDay"]`, '');
    await press(page, 'Save', card);
    await page.waitForSelector(`${card} .badge >> text=guest`);
    await expect
      .poll(async () => (await people()).persons.find((one) => one.id === id)?.limits)
      .toEqual({});
    expect(await world().nanobot('audit', 'show', '--limit', '20')).toContain('settings');
    await page.selectOption('[data-policy="trusted"] select', 'open');
    await page.waitForSelector('[role="status"] >> text=Approvals: open.');
    expect((await people()).policies).toContainEqual({
      id: 'trusted',
      approvals: 'open',
      configured: 'normal',
    });
  });

  it('shows on a phone what came of a press far down the page, also of one that changes nothing', async () => {
    const card = `[data-person="${await idOf(BEN)}"]`;
    await using rig = await open({ viewport: { width: 390, height: 844 } });
    const { page } = rig;
    await page.click(`${card} > summary`);
    const isInView = async (text: string) =>
      expect
        .poll(async () => {
          const box = await page.locator('.view > .view-problem').getByText(text).boundingBox();
          return box !== null && box.y >= 0 && box.y + box.height <= 844;
        })
        .toBe(true);
    const zone = page.locator(`${card} [name="timezone"]`);
    const before = await zone.inputValue();
    await zone.fill('Middle-earth');
    await press(page, 'Save', card);
    await isInView('Unknown time zone');
    await zone.fill(before);
    await press(page, 'Save', card);
    await isInView('There is nothing to change.');
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    world().telegram.say({ id: 669, first_name: LONG_WORD.slice(0, 60) }, LONG_WORD);
    const waiting = async () => (await people()).questions;
    // The output of the program above is untrusted content: no longer rule is offered after it.
    await world().asks(OWNER, '/new', /New conversation/);
    const before = world().bot(OWNER).length;
    asks('rule');
    await expect.poll(async () => (await waiting()).length).toBe(1);
    const [rule] = await waiting();
    const token = rule?.choices.find(({ label }) => label === 'Always allow')?.token;
    await api('/api/v1/people/answers', { token });
    await world().hears(OWNER, /^Seen: .*It was run once/s, before);
    asks(LONG_WORD);
    await expect.poll(async () => (await waiting()).length).toBe(1);
    await using screens = await openScreens(world().gateway);
    await screens.fit(HASH, 'people', async (page) => {
      await page.waitForSelector('[data-rule]');
    });
    await screens.fit(HASH, 'people-let-in', async (page) => {
      await page.fill('[name="userId"]', LONG_WORD);
      await page.locator('#let-in').scrollIntoViewIfNeeded();
    });
    await screens.fit(HASH, 'people-one', async (page) => {
      await page.locator('[data-person] > summary').first().click();
      await page.locator('[data-person] > summary').first().scrollIntoViewIfNeeded();
    });
  });

  it('makes two people one, and takes a channel away again', async () => {
    const said = { clientId: 'c1', text: 'hello from the page' };
    await api('/api/web/chats/a/messages', said);
    const local = async () =>
      (await people()).persons.find(({ channels }) =>
        channels.some(({ channel }) => channel === 'web'),
      );
    await expect.poll(local).toBeDefined();
    const [owner, own] = [await idOf(OWNER), (await local())?.id ?? ''];
    const refused = await api(`/api/v1/people/${own}`, { role: 'blocked' });
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      'the person who uses this machine cannot be blocked.',
    ]);
    await using rig = await open();
    const { page } = rig;
    const card = `[data-person="${owner}"]`;
    await page.click(`${card} > summary`);
    await page.click(`${card} summary >> text=The same person as…`);
    await page.selectOption(`${card} .line select`, own);
    await press(page, 'Put together', card);
    await page.waitForSelector('[role="status"] >> text=They are one person now');
    expect((await local())?.id).toBe(owner);
    await page
      .locator(card)
      .getByRole('button', { name: /^Disconnect web/ })
      .click();
    await press(page, 'Really disconnect web', card);
    await page.waitForSelector('[role="status"] >> text=web is disconnected.');
  });

  it('follows the gateway after it was killed and started again', async () => {
    await using rig = await open();
    const { page } = rig;
    await world().restart();
    await networkIsBack(page);
    world().telegram.say({ id: 668, first_name: 'Carol' }, 'Anybody?');
    await page.waitForSelector('[data-sender="668"]');
  });
});
