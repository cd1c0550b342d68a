// The setup on the web page with the whole program behind it: a model with its key, Telegram with its token
// and the pairing link, a mailbox, the state of each channel; both themes on a desktop and a phone; a gateway
// that is killed and started again.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { chromiumAbsent, launchChromium } from '../support/chromium.ts';
import {
  type ApiCall,
  callApi,
  fitsEachScreen,
  HOSTILE,
  openConsole,
} from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { readSvgQr } from '../support/qr-reader.ts';
import { eventually } from '../support/web-page.ts';

const absent = chromiumAbsent();
if (absent !== undefined) console.log(`skipped: the setup on the web page (${absent})`);

const ADA = 1001;
const KEY = 'sk-right-key-of-this-test-1';
const WRONG_TOKEN = '111111:AAAA-this-one-is-not-known-to-telegram';
const TELEGRAM = '[data-channel="telegram"]';
const LONG_MS = 180_000;

describe.skipIf(absent !== undefined)('the setup on the web page', () => {
  let browser: Browser;
  let telegram: BotApi;
  let model: LlmServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    telegram = await startBotApi();
    model = await startLlmServer({ apiKey: KEY, models: ['sim-1'] });
    model.respond(() => say('ready'));
    home = await makeTestHome({
      gateway: { port },
      providers: { openai: { apiBase: model.openaiBase } },
      channels: { telegram: { apiRoot: telegram.apiRoot } },
    });
    gateway = await home.start();
    browser = await launchChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await home?.[Symbol.asyncDispose]();
    await model?.[Symbol.asyncDispose]();
    await telegram?.[Symbol.asyncDispose]();
  });

  const api = (...call: ApiCall) => callApi(gateway, ...call);
  const open = (options?: BrowserContextOptions) =>
    openConsole(browser, gateway, '#/setup', options);
  const configured = () => readFile(join(home.path, 'config.json'), 'utf8');

  it('connects a model with its key: refused keys are said and not saved', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    await page.waitForSelector('.badge >> text=demo');
    const form = page.locator('form[aria-label="A provider, with an API key"]');
    await form.locator('select').selectOption({ label: 'OpenAI' });
    expect(await form.locator('input[name=model]').inputValue()).toMatch(/^openai\//);
    await form.locator('input[name=model]').fill('openai/sim-1');
    await form.locator('input[name=apiKey]').fill('sk-wrong');
    await form.locator('text=Test and save').click();
    await page.waitForSelector('[role=alert] >> text=/key/i');
    expect(await configured()).not.toContain('sk-wrong');
    await form.locator('input[name=apiKey]').fill(KEY);
    await form.locator('text=Test and save').click();
    await page.waitForSelector('[role=status] >> text=/openai.sim-1 answered in \\d+ ms/');
    await page.waitForSelector('text=Answers come from openai/sim-1');
    expect(await page.content()).not.toContain(KEY);
    expect(JSON.parse(await configured()).providers.openai.apiKey).toBe(KEY);
    expect(problems).toEqual([]);
  });

  it(
    'connects Telegram: the token is proved, and the link pairs its owner',
    async () => {
      await using rig = await open();
      const { page, problems } = rig;
      const card = page.locator(TELEGRAM);
      await card.locator('.channel-state >> text=Off').waitFor();
      await card.locator('text=Set up').click();
      const token = card.locator('input[type=password]');
      await token.waitFor();
      expect(await page.evaluate('document.activeElement.type')).toBe('password');
      await token.fill(WRONG_TOKEN);
      await page.keyboard.press('Enter');
      await card.locator('.step-line.bad').waitFor();
      expect(await configured()).not.toContain(WRONG_TOKEN);
      await card.locator('button >> text=Try again').click();
      await token.waitFor();
      await token.fill(telegram.token);
      await page.keyboard.press('Enter');
      await card.locator('text=/Telegram accepted it: @/').waitFor();
      const link = (await card.locator('.phone-link a').getAttribute('href')) ?? '';
      expect(link).toMatch(/^https:\/\/t\.me\/\w+\?start=/);
      const qr = (await card.locator('.login-qr').getAttribute('src')) ?? '';
      expect(readSvgQr(qr)).toBe(link);
      await card.locator('.channel-state >> text=/On as @/').waitFor();
      telegram.say(ADA, `/start ${new URL(link).searchParams.get('start')}`);
      await card.locator('text=/Paired with/').waitFor();
      await card.locator('text=Set up: Telegram @').waitFor();
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Done');
      await page.keyboard.press('Enter');
      await card.locator('text=Check and pair').waitFor();
      telegram.say(ADA, 'Hello');
      await telegram.waitFor(() =>
        telegram.chat(ADA).messages.find(({ from, text }) => from === 'bot' && text === 'ready'),
      );
      expect(await page.content()).not.toContain(telegram.token);
      expect(problems).toEqual([]);
    },
    LONG_MS,
  );

  it('ends a step that the page leaves, and an answer that nobody waits for is refused', async () => {
    await using rig = await open();
    const { page } = rig;
    const lark = page.locator('[data-channel="lark"]');
    const asked = page.waitForResponse((response) => response.url().includes('/setup/channels/'));
    await lark.locator('text=Set up').click();
    await asked;
    await lark.locator('label >> text=App id').waitFor();
    await lark.locator('text=Close').click();
    await lark.locator('text=Set up').waitFor();
    const gone = await api('/api/v1/setup/answers/none', { answer: 'x' });
    expect([gone.status, gone.body.error.code]).toEqual([404, 'not_found']);
  });

  it('finds the servers of a mailbox, says what was wrong, and keeps the answers', async () => {
    await using rig = await open();
    const { page } = rig;
    const card = page.locator('[data-channel="email"]');
    await card.locator('text=Set up').click();
    const field = card.locator('form.answer input');
    await field.fill('no address');
    await page.keyboard.press('Enter');
    await card.locator('.problem >> text=Enter an address').waitFor();
    await field.fill('agent@mail.invalid');
    await page.keyboard.press('Enter');
    for (const host of ['IMAP', 'SMTP']) {
      await card.locator(`label >> text=${host} server`).waitFor();
      await field.fill('127.0.0.1');
      await page.keyboard.press('Enter');
    }
    await card.locator('label >> text=Whose email').waitFor();
    await field.fill('ada@mail.invalid');
    await page.keyboard.press('Enter');
    await card.locator('label >> text=Password').waitFor();
    await field.fill('secret-of-the-mailbox');
    await page.keyboard.press('Enter');
    await card.locator('.step-line.bad').waitFor();
    expect(await configured()).not.toContain('secret-of-the-mailbox');
    await card.locator('button >> text=Try again').click();
    await card.locator('label >> text=Email address').waitFor();
    expect(await field.inputValue()).toBe('agent@mail.invalid');
  });

  it('goes on after the gateway was killed, and the step says that it was lost', async () => {
    await using rig = await open();
    const { page } = rig;
    const lark = page.locator('[data-channel="lark"]');
    await lark.locator('text=Set up').click();
    await lark.locator('label >> text=App id').waitFor();
    await gateway.kill();
    await page.waitForSelector('.view-problem >> text=Connection lost');
    await lark.locator('.step-line.bad').waitFor();
    gateway = await home.start();
    await lark.locator('button >> text=Try again').click();
    await lark.locator('label >> text=App id').waitFor();
    await eventually(async () =>
      expect(await page.locator('.view-problem:visible').count()).toBe(0),
    );
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await fitsEachScreen(browser, gateway, '#/setup', 'setup', async (page) => {
      await page.click('text=Connect another model');
      await page.waitForSelector('form[aria-label="A provider, with an API key"]');
      const lark = page.locator('[data-channel="lark"]');
      await lark.locator('text=Set up').click();
      await lark.locator('form.answer input').fill(HOSTILE);
      await page.keyboard.press('Enter');
      await lark.locator('label >> text=App secret').waitFor();
      await page.evaluate("document.querySelector('#console').scrollTop = 0");
    });
  });

  it('is a documented API for owners alone', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    expect(Object.keys(paths).filter((path) => path.includes('/setup/'))).toEqual([
      '/api/v1/setup/models',
      '/api/v1/setup/models/listed',
      '/api/v1/setup/events',
      '/api/v1/setup/channels/{name}',
      '/api/v1/setup/channels/{name}/login',
      '/api/v1/setup/channels/{name}/restart',
      '/api/v1/setup/answers/{question}',
    ]);
    const refused = await api('/api/v1/setup/events', undefined, { authorization: 'Bearer none' });
    expect(refused.status).toBe(401);
  });
});
