// Schedules on the web page and over the documented API, with the whole program behind them: created,
// run, paused and removed there; what the command line changes is shown; nothing overflows, and a
// screen reader finds its way.

import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildPage } from '../../scripts/page.ts';
import { jobList, jobRuns } from '../../src/features/schedule/rules/views.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { chromiumAbsent, launchChromium } from '../support/chromium.ts';
import {
  type ApiCall,
  callApi,
  fitsEachScreen,
  HOSTILE,
  LONG_WORD,
  openConsole,
} from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { eventually } from '../support/web-page.ts';

const absent = chromiumAbsent();
if (absent !== undefined) console.log(`skipped: schedules on the web page (${absent})`);

it('brings no code of the server into the browser', async () => {
  const { inputs } = await buildPage();
  const own =
    /^(?:src\/http\/page|node_modules\/(?:preact|uplot|marked|@preact\/signals(?:-core)?))\//;
  const pure = ['src/kernel/config/json-paths.ts'];
  expect(inputs.filter((path) => !own.test(path) && !pure.includes(path))).toEqual([]);
});

describe.skipIf(absent !== undefined)('schedules on the web page', () => {
  let browser: Browser;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    model = await startLlmServer({ respond: echo });
    home = await makeTestHome({
      agents: { defaults: { model: 'openai/sim-1' } },
      providers: { openai: { apiKey: 'sk-page', apiBase: model.openaiBase } },
      gateway: { port },
    });
    [gateway, browser] = await Promise.all([home.start(), launchChromium()]);
  });

  afterAll(async () => {
    await browser?.close();
    await home?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
  });

  const nanobot = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runNanobot(args, { home: home.path });
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return stdout;
  };
  const cronList = async () => JSON.parse(await nanobot('cron', 'list', '--json'));

  const api = (...call: ApiCall) => callApi(gateway, ...call);

  const open = (options?: BrowserContextOptions) =>
    openConsole(browser, gateway, '#/schedules', options);

  const press = (page: Page, name: string, within = '.view') =>
    page.locator(within).getByRole('button', { name, exact: true }).click();
  const says = (page: Page, text: string) =>
    page.waitForSelector(`[role="status"] >> text=${text}`);

  afterEach(async () => {
    for (const { id } of (await api('/api/v1/schedules')).body.jobs)
      await api(`/api/v1/schedules/${id}/remove`, {});
  });

  it('says that there are none, creates one, runs it, shows its history, pauses and removes it', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.waitForSelector('text=Nothing is scheduled');
    await press(page, 'New schedule');
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('when');
    await page.fill('[name="when"]', 'tomorrow-ish');
    await page.fill('[name="text"]', `please say nonce-run ${HOSTILE}`);
    await page.getByLabel('Task for the agent').check();
    await press(page, 'Schedule');
    await page.waitForSelector('form [role="alert"] >> text="tomorrow-ish" is not a time');
    await press(page, '0 8 * * 1-5');
    await page.click('.view form summary');
    await page.fill('[name="name"]', 'Daily nonce');
    await press(page, 'Schedule');
    await says(page, 'Daily nonce is scheduled.');
    const [made] = await cronList();
    expect(made).toMatchObject({ name: 'Daily nonce', kind: 'ask', maker: { kind: 'operator' } });
    const card = `[data-job="${made.id}"]`;
    await page.waitForSelector(`${card} >> text=0 8 * * 1-5 (UTC)`);
    await page.click(`${card} summary >> text=Text`);
    expect(await page.innerText(`${card} pre`)).toBe(`please say nonce-run ${HOSTILE}`);
    await press(page, 'Run now', card);
    await page.waitForSelector(`${card} dd >> text=/^done, /`);
    await page.click(`${card} summary >> text=History`);
    await page.waitForSelector(`${card} .runs pre >> text=nonce-run`);
    await press(page, 'Pause', card);
    await page.waitForSelector(`${card} .badge >> text=paused`);
    await press(page, 'Resume', card);
    await page.waitForSelector(`${card} .badge`, { state: 'detached' });
    await press(page, 'Remove…', card);
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep');
    await page.keyboard.press('Escape');
    await press(page, 'Keep', card);
    await press(page, 'Remove…', card);
    await press(page, 'Remove', card);
    await says(page, 'Daily nonce was removed.');
    await page.waitForSelector('text=Nothing is scheduled');
    expect(await cronList()).toEqual([]);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('shows what the command line changes, and goes on after the gateway was killed', async () => {
    await using rig = await open();
    const { page } = rig;
    await nanobot('cron', 'add', 'drink water', '--say', '--every', '2h', '--name', 'Water');
    await page.waitForSelector('.card h2 >> text=Water');
    await gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    expect(await page.innerText('.card h2')).toBe('Water');
    await nanobot('cron', 'disable', 'Water');
    gateway = await home.start();
    await page.waitForSelector('.card .badge >> text=paused');
    await eventually(async () => expect(await page.isHidden('.view-problem')).toBe(true));
    await page.click('#pages >> text=Chat');
    await page.waitForSelector('#text');
    expect(await page.title()).not.toContain('Schedules');
    await page.goBack();
    await page.waitForSelector('.card h2 >> text=Water');
    expect(await page.title()).toBe('Schedules – nanobot');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Schedules');
  });

  it('is used with the keyboard alone', async () => {
    await using rig = await open();
    const { page } = rig;
    await page.focus('.view-head button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.view form');
    await page.keyboard.type('in 20m');
    await page.locator('[name="text"]').focus();
    await page.keyboard.type('the tea is ready');
    await page.locator('form [type="submit"]').focus();
    await page.keyboard.press('Enter');
    await says(page, 'the tea is ready is scheduled.');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('New schedule');
    const [made] = (await api('/api/v1/schedules')).body.jobs;
    expect(made).toMatchObject({ kind: 'say', text: 'the tea is ready' });
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await api('/api/v1/schedules', {
      when: 'every 2h',
      text: LONG_WORD,
      name: `A ${LONG_WORD}`.slice(0, 60),
    });
    await api('/api/v1/schedules', {
      when: 'at 2999-01-31 08:00',
      text: HOSTILE,
      kind: 'say',
      name: 'New year',
    });
    const { id } = (await api('/api/v1/schedules')).body.jobs[0];
    await api(`/api/v1/schedules/${id}/disable`, {});
    const fitsIn = fitsEachScreen.bind(undefined, browser, gateway, '#/schedules');
    await fitsIn('schedules-list', async (page) => {
      await page.waitForSelector('.card');
      for (const text of await page.locator('.card summary >> text=Text').all()) await text.click();
    });
    await fitsIn('schedules-form', async (page) => {
      await press(page, 'New schedule');
      await page.click('.view form summary');
    });
  });

  it('are a documented API: the document names each route, and answers are as it says', async () => {
    const { paths, openapi } = (await api('/api/v1/openapi.json')).body;
    expect(openapi).toBe('3.1.0');
    const own = Object.keys(paths).filter((path) => path.startsWith('/api/v1/schedules'));
    expect(own.sort()).toEqual([
      '/api/v1/schedules',
      '/api/v1/schedules/events',
      '/api/v1/schedules/{id}/runs',
      '/api/v1/schedules/{id}/{change}',
    ]);
    const { schema } = paths['/api/v1/schedules'].post.requestBody.content['application/json'];
    expect(schema.required).toEqual(['when', 'text']);
    const made = await api('/api/v1/schedules', { when: 'in 20m', text: 'tea', kind: 'say' });
    expect([made.status, made.body.job.name]).toEqual([201, 'tea']);
    const { id } = made.body.job;
    expect(jobList.parse((await api('/api/v1/schedules')).body).jobs).toHaveLength(1);
    expect(jobRuns.parse((await api(`/api/v1/schedules/${id}/runs`)).body).runs).toEqual([]);
    const refusals = await Promise.all([
      api('/api/v1/schedules', { when: 'in 20m: x', text: 'tea' }),
      api('/api/v1/schedules', { when: 'in 20m', text: ' ' }),
      api('/api/v1/schedules', { when: 'in 20m', text: 'tea', rights: 'owner' }),
      api(`/api/v1/schedules/${id}/explode`, {}),
      api('/api/v1/schedules/j0/run', {}),
      api(`/api/v1/schedules/${id}/stop`, {}),
      api('/api/v1/schedules', undefined, { authorization: 'Bearer none' }),
      api('/api/v1/openapi.json', undefined, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 400, 400, 404, 409, 401, 401]);
    expect((await api('/api/v1/schedules')).body.jobs).toHaveLength(1);
  });

  it('can be browsed as a page', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.goto(`${gateway.address}/api/docs`);
    await page.waitForSelector('h2 >> text=POST /api/v1/schedules/{id}/{change}');
    await page.locator('summary >> text=Request').first().click();
    expect(problems).toEqual([]);
    const shots = process.env['NANOBOT_SCREENSHOTS'];
    if (shots !== undefined) await page.screenshot({ path: `${shots}/api-docs.png` });
  });
});
