// Schedules and runs on the web page and over the documented API, with the whole program behind them:
// created, run, paused, stopped and removed there; what the command line changes is shown; nothing
// overflows, and a screen reader finds its way.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { buildPage } from '../../scripts/page.ts';
import { runList } from '../../src/features/conversations/rules/runs.ts';
import { jobList, jobRuns } from '../../src/features/schedule/rules/views.ts';
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
  openScreens,
} from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import {
  echo,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  startLlmServer,
} from '../support/llm-server.ts';
import { eventually } from '../support/web-page.ts';

const WORKFLOW = `
description: Sums a text up.
inputs: { text: { type: string } }
steps:
  - { id: sum, kind: llm_skill, capability: sum, with: { text: "{{ input.text }}" } }
result: "{{ sum.points }}"
`;
const CAPABILITY = `
description: Sums up.
prompt: "Sum this up: {{ text }}"
output: { type: object, required: [points], properties: { points: { type: string } } }
`;
const PARTS = [{ prompt: 'DO first' }, { prompt: `DO second ${HOSTILE}` }];

/** A person's message starts subagents, one of which starts another; all wait for the gate. */
function atWork(gate: Promise<void>) {
  const spawn = (...calls: readonly object[]): LlmReply => ({
    toolCalls: calls.map((call) => ({ name: 'spawn', arguments: { ...call } })),
  });
  return ({ lastUserText: text, toolResults, body }: LlmRequest): LlmReply => {
    if (text.includes('Sum this up')) return { chunks: ['{"points":"few"}'], gate };
    if (JSON.stringify(body).includes('[Task for a subagent')) {
      const isAbove = text.includes('DO nest') && toolResults.length === 0;
      return isAbove ? spawn({ action: 'spawn', task: 'DO deep' }) : { chunks: [HOSTILE], gate };
    }
    if (!text.includes('START') || toolResults.length > 0) return { chunks: ['They work.'] };
    const task = `DO nest ${LONG_WORD}`;
    return spawn(
      { action: 'spawn', task, label: 'Nest' },
      { action: 'pipeline', label: 'Line', steps: PARTS },
    );
  };
}

it('brings no code of the server into the browser', async () => {
  const { inputs } = await buildPage();
  const libraries =
    'preact|uplot|marked|@preact/signals(?:-core)?|lowlight|devlop|highlight\\.js|temml';
  const own = new RegExp(`^(?:src/http/page|node_modules/(?:${libraries}))/`);
  const pure = [
    'src/kernel/config/json-paths.ts',
    'src/lib/markup/writer.ts',
    'src/lib/time/quiet-hours.ts',
    'src/lib/time/zone-time.ts',
  ];
  expect(inputs.filter((path) => !own.test(path) && !pure.includes(path))).toEqual([]);
});

/** What the configuration says about it does not count. */
const SET = { NANOBOT__heartbeat__everyMins: '45' };

describeInChromium('schedules on the web page', () => {
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    model = await startLlmServer({ respond: echo });
    home = await makeTestHome({
      agents: {
        defaults: { model: 'openai/sim-1' },
        subagents: { maxDepth: 2 },
        workflows: { enabled: true },
      },
      models: { prices: [{ model: 'openai/sim-1', input: 1000, cached: 1000, output: 2000 }] },
      providers: { openai: { apiKey: 'sk-page', apiBase: model.openaiBase } },
      gateway: { port },
    });
    gateway = await home.start(SET);
  });

  afterAll(async () => {
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

  const open = (options?: BrowserContextOptions) => openConsole(gateway, '#/schedules', options);

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
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Keep');
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
    expect(await page.innerText('[data-job] h2')).toBe('Water');
    await nanobot('cron', 'disable', 'Water');
    gateway = await home.start(SET);
    await page.waitForSelector('.card .badge >> text=paused');
    await eventually(async () =>
      expect(await page.locator('.view-problem:not([hidden])').count()).toBe(0),
    );
    await page.click('#pages >> text=Chat');
    await page.waitForSelector('#text');
    expect(await page.title()).not.toContain('Schedules');
    await page.goBack();
    await page.waitForSelector('.card h2 >> text=Water');
    expect(await page.title()).toBe('Schedules – nanobot');
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Schedules');
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
    await page.locator('form.card [type="submit"]').focus();
    await page.keyboard.press('Enter');
    await says(page, 'the tea is ready is scheduled.');
    await expect
      .poll(() => page.evaluate('document.activeElement.textContent'))
      .toBe('New schedule');
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
    await using screens = await openScreens(gateway);
    await screens.fit('#/schedules', 'schedules-list', async (page) => {
      await page.waitForSelector('[data-job]');
      await press(page, 'Other hours on some days', '[aria-label="Quiet hours"]');
      for (const text of await page.locator('.card summary >> text=Text').all()) await text.click();
      await page.locator('[aria-label="Quiet hours"]').scrollIntoViewIfNeeded();
    });
    await screens.fit('#/schedules', 'schedules-form', async (page) => {
      await press(page, 'New schedule');
      await page.click('.view form summary');
    });
  });

  it('fills the fields from a sentence by one call of the model, and saves what was reviewed', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await press(page, 'New schedule');
    await page.fill('#sentence', 'every weekday at 8 remind me of the news');
    const asked = model.requests.length;
    model.script({ chunks: ['I am not sure when that is.'] });
    await page.keyboard.press('Enter');
    await page.waitForSelector('form [role="alert"] >> text=The model did not understand');
    const draft = { kind: 'say', when: '0 8 * * 1-5', text: `Read the news ${HOSTILE}` };
    model.script({ chunks: [`Here: ${JSON.stringify({ ...draft, name: 'News' })}`] });
    await press(page, 'Fill in');
    await page.waitForSelector('form >> text=Nothing is saved yet');
    expect(await page.inputValue('[name="when"]')).toBe(draft.when);
    expect(await page.inputValue('[name="text"]')).toBe(draft.text);
    expect(await page.getByLabel('Reminder').isChecked()).toBe(true);
    expect(model.requests.length - asked).toBe(2);
    expect(model.requests.at(-1)?.lastUserText).toContain('every weekday at 8');
    expect(await cronList()).toEqual([]);
    await press(page, 'Schedule');
    await says(page, 'News is scheduled.');
    expect(await cronList()).toMatchObject([{ name: 'News', kind: 'say', text: draft.text }]);
    expect(problems).toEqual([]);
  });

  it('shows and changes the heartbeat and the quiet hours', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const file = join(home.path, 'workspace', 'HEARTBEAT.md');
    const heartbeat = '[aria-label="Heartbeat"]';
    await press(page, 'Edit the list', heartbeat);
    await page.fill(`${heartbeat} textarea`, `- say nonce-beat ${HOSTILE}`);
    await press(page, 'Save', heartbeat);
    await page.waitForSelector(`${heartbeat} pre >> text=nonce-beat`);
    expect(await readFile(file, 'utf8')).toBe(`- say nonce-beat ${HOSTILE}`);
    await press(page, 'Look now', heartbeat);
    await page.waitForSelector(`${heartbeat} >> text=The agent looks at it now.`);
    await eventually(async () =>
      expect(model.requests.some(({ lastUserText: text }) => text.includes('nonce-beat'))).toBe(
        true,
      ),
    );
    await press(page, 'Edit the list', heartbeat);
    await writeFile(file, 'changed by hand');
    await press(page, 'Save', heartbeat);
    await page.waitForSelector(`${heartbeat} >> text=HEARTBEAT.md was changed meanwhile`);
    await press(page, 'Cancel', heartbeat);
    await press(page, 'Switch off', heartbeat);
    await page.waitForSelector(`${heartbeat} .badge >> text=off`);
    await page.click(`${heartbeat} summary`);
    const variable = await page.locator(`${heartbeat} details .soft`).allInnerTexts();
    expect(variable).toEqual([expect.stringMatching(/NANOBOT__heartbeat__everyMins, which takes/)]);
    await page.fill(`${heartbeat} [name="activeHours"]`, 'morning');
    await press(page, 'Save', heartbeat);
    await page.waitForSelector(`${heartbeat} [role="alert"] >> text=heartbeat.activeHours`);
    await page.fill(`${heartbeat} [name="activeHours"]`, '08:00-20:00');
    await press(page, 'Save', heartbeat);
    await page.waitForSelector(`${heartbeat} >> text=08:00-20:00, the agent looks`);

    const quiet = '[aria-label="Quiet hours"]';
    const week = page.locator(`${quiet} svg`);
    const { width = 0 } = (await week.boundingBox()) ?? {};
    for (const hour of [22.5, 6.5]) {
      await week.click({ position: { x: (width * hour) / 24, y: 10 } });
    }
    await press(page, 'Save', quiet);
    await page.getByRole('button', { name: 'No quiet hours' }).waitFor();
    await page.getByLabel('To', { exact: true }).fill('06:30');
    // While it is being saved, Enter does nothing.
    await page.waitForSelector(`${quiet} [type="submit"]:enabled`);
    await page.keyboard.press('Enter');
    const saved = async () => JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
    await eventually(async () => expect((await saved()).quietHours).toBe('22:00-06:30'));
    await press(page, 'Other hours on some days', quiet);
    const [, later] = await page.getByLabel('From', { exact: true }).all();
    await later?.fill('23:30');
    await page.getByLabel('To', { exact: true }).last().fill('09:00');
    await page.getByLabel('Last day').first().selectOption('Thursday');
    await page.getByLabel('First day').first().selectOption('Sunday');
    await press(page, 'Save', quiet);
    const byDay = 'Sun-Thu 22:00-06:30, Fri-Sat 23:30-09:00';
    await eventually(async () => expect((await saved()).quietHours).toBe(byDay));
    // The night of Thursday ends on Friday, that of Friday on Saturday.
    const spans = (day: number) =>
      page
        .locator(`${quiet} svg g`)
        .nth(day)
        .locator('.quiet')
        .evaluateAll((all) =>
          all.map((one) => ['x', 'width'].map((name) => one.getAttribute(name))),
        );
    await eventually(async () =>
      expect(await spans(4)).toEqual([
        ['0', '390'],
        ['1410', '30'],
      ]),
    );
    expect(await spans(5)).toEqual([
      ['0', '540'],
      ['1410', '30'],
    ]);
    expect(await spans(6)).toEqual([
      ['1320', '120'],
      ['0', '540'],
    ]);
    expect(await saved()).toMatchObject({
      heartbeat: { enabled: false, activeHours: '08:00-20:00' },
    });
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('shows workflows and subagents as a tree while they run, over a kill, and stops a branch', async () => {
    const gate = Promise.withResolvers<void>();
    model.respond(atWork(gate.promise));
    for (const [folder, text] of Object.entries({
      workflows: WORKFLOW,
      capabilities: CAPABILITY,
    })) {
      await mkdir(join(home.path, 'workspace', folder), { recursive: true });
      await writeFile(join(home.path, 'workspace', folder, 'sum.yaml'), text);
    }
    await using rig = await openConsole(gateway, '#/schedules');
    const { page, problems } = rig;
    await page.click('.tabs >> text=Runs');
    await page.waitForSelector('text=Nothing is running');
    const job = { when: 'every 2h', kind: 'workflow', text: 'sum text=milk', name: 'Milk' };
    const { id } = (await api('/api/v1/schedules', job)).body.job;
    await api(`/api/v1/schedules/${id}/run`, {});
    await page.waitForSelector('.card >> text=Step 1: sum');
    await page.waitForSelector('.card >> text=Started from Milk');
    await nanobot('agent', '-m', 'START');
    await page.waitForSelector('.branches h3 >> text=DO deep');
    await page.waitForSelector('.branches h3 >> text=Line 1');
    await page.waitForSelector('.doing >> text=0 answers so far, of 2 steps');
    await gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    gateway = await home.start(SET);
    await networkIsBack(page);
    await eventually(async () => expect(await page.isHidden('.view-problem')).toBe(true));
    await page.waitForSelector('.branches h3 >> text=DO deep');
    const { runs } = runList.parse((await api('/api/v1/runs')).body);
    const named = (label: string) => runs.find((run) => run.label === label);
    expect(named('DO deep')).toMatchObject({ parent: named('Nest')?.id, state: 'running' });
    expect(named('Line 1')).toMatchObject({ parent: named('Line')?.id, canStop: false });
    expect(named('sum')).toMatchObject({ kind: 'workflow', session: `cron:${id}` });
    expect(named('Nest')?.micros).toBeGreaterThan(0);
    const stop = async (run: string) => (await api(`/api/v1/runs/${run}/stop`, {})).status;
    expect(await stop(named('Line 1')?.id ?? '')).toBe(409);
    expect(await stop('h0')).toBe(404);
    await press(page, 'Stop Nest');
    await says(page, 'Nest was stopped.');
    const ended = page.locator('[aria-label="Ended"] .card');
    await ended.locator('h3 >> text=DO deep').waitFor();
    await expect
      .poll(() => ended.locator('.badge').allInnerTexts())
      .toEqual(['stopped', 'stopped']);
    expect(await stop(named('Nest')?.id ?? '')).toBe(409);
    const audit = await nanobot('audit', 'show', '--json');
    expect(audit).toContain(`kill ${named('Nest')?.id}`);
    await fitsEachScreen(gateway, '#/runs', 'runs', async (opened) => {
      await opened.waitForSelector('.branches h3 >> text=Line 1');
      for (const text of await opened.locator('.branch summary').all()) await text.click();
    });
    gate.resolve();
    await ended.locator('h2 >> text=sum').waitFor();
    await ended.locator('h3 >> text=Line 2').waitFor();
    const icons = await (await fetch(`${gateway.address}/icons.svg`)).text();
    for (const channel of ['subagent', 'workflow', 'cron']) {
      expect(icons).toContain(`id="on-${channel}"`);
    }
    await page.goto(`${gateway.address}/#/sessions`);
    await page.waitForSelector('.row .badge use[href$="#on-subagent"]', { state: 'attached' });
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
    model.respond(echo);
  });

  it('are a documented API: the document names each route, and answers are as it says', async () => {
    const { paths, openapi } = (await api('/api/v1/openapi.json')).body;
    expect(openapi).toBe('3.1.0');
    const own = Object.keys(paths).filter((path) => path.startsWith('/api/v1/schedules'));
    expect(own.sort()).toEqual([
      '/api/v1/schedules',
      '/api/v1/schedules/draft',
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
