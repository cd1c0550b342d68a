// The setup on the web page with the whole program behind it: a model with its key, Telegram with its token
// and the pairing link, a mailbox, the state of each channel; voice, web search and tool servers; both themes on a desktop and a phone; a gateway
// that is killed and started again.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  type ApiCall,
  callApi,
  fitsEachScreen,
  HOSTILE,
  openConsole,
  reconnects,
} from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { portOf } from '../support/listening.ts';
import { type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { type McpOAuthServer, startMcpOAuthServer } from '../support/mcp-oauth-server.ts';
import { readSvgQr } from '../support/qr-reader.ts';
import { startVoiceServer, VOICE_KEY, type VoiceServer } from '../support/voice-server.ts';
import { eventually } from '../support/web-page.ts';

const ADA = 1001;
const KEY = 'sk-right-key-of-this-test-1';
const WRONG_TOKEN = '111111:AAAA-this-one-is-not-known-to-telegram';
const SEARCH_KEY = 'tvly-right-key-of-this-test-1';
const CHILD = join(import.meta.dirname, '../support/mcp-server-child.ts');
const TELEGRAM = '[data-channel="telegram"]';

/** Tavily as far as a search goes: its key, and one page for every question. */
async function startSearchServer() {
  const server = createServer((request, response) => {
    const isAllowed = request.headers.authorization === `Bearer ${SEARCH_KEY}`;
    const results = [{ url: 'https://example.org/', title: HOSTILE, content: '' }];
    response
      .writeHead(isAllowed ? 200 : 401, { 'content-type': 'application/json' })
      .end(JSON.stringify({ results: isAllowed ? results : [] }));
  });
  const port = await portOf(server);
  return {
    address: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

describeInChromium('the setup on the web page', () => {
  let telegram: BotApi;
  let model: LlmServer;
  let voice: VoiceServer;
  let search: Awaited<ReturnType<typeof startSearchServer>>;
  let hosted: McpOAuthServer;
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    telegram = await startBotApi();
    model = await startLlmServer({ apiKey: KEY, models: ['sim-1'] });
    model.respond(() => say('ready'));
    voice = await startVoiceServer();
    search = await startSearchServer();
    hosted = await startMcpOAuthServer();
    home = await makeTestHome({
      gateway: { port },
      providers: { openai: { apiBase: model.openaiBase }, groq: { apiBase: voice.base } },
      channels: { telegram: { apiRoot: telegram.apiRoot } },
      tools: { web: { search: { addresses: { tavily: search.address } } } },
    });
    gateway = await home.start();
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await Promise.all([model, voice, search, hosted].map((one) => one?.[Symbol.asyncDispose]()));
    await telegram?.[Symbol.asyncDispose]();
  });

  const api = (...call: ApiCall) => callApi(gateway, ...call);
  const open = (options?: BrowserContextOptions) => openConsole(gateway, '#/setup', options);
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

  it('connects Telegram: the token is proved, and the link pairs its owner', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const card = page.locator(TELEGRAM);
    await card.locator('.channel-state >> text=Off').waitFor();
    await card.locator('text=Set up').click();
    const token = card.locator('input[type=password]');
    await token.waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('password');
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
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Done');
    await page.keyboard.press('Enter');
    await card.locator('text=Check and pair').waitFor();
    telegram.say(ADA, 'Hello');
    await telegram.waitFor(() =>
      telegram.chat(ADA).messages.find(({ from, text }) => from === 'bot' && text === 'ready'),
    );
    expect(await page.content()).not.toContain(telegram.token);
    expect(problems).toEqual([]);
  });

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

  it('sets up the web search and voice: each is proved, and a refused key is not saved', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const searching = page.locator('section[aria-label="Web search"]');
    await searching.locator('text=Set up the web search').click();
    await searching.locator('button >> text=Tavily').click();
    await searching.locator('label >> text=API key of Tavily').waitFor();
    await searching.locator('input').fill('tvly-wrong');
    await page.keyboard.press('Enter');
    await searching.locator('.step-line.bad >> text=/key is refused/').waitFor();
    expect(await configured()).not.toContain('tvly-wrong');
    await searching.locator('button >> text=Try again').click();
    await searching.locator('button >> text=Tavily').click();
    await searching.locator('input').fill(SEARCH_KEY);
    await page.keyboard.press('Enter');
    await searching.locator('text=Tavily answered with 1 result.').waitFor();
    await searching.locator('text=Searches go to tavily.').waitFor();
    expect(JSON.parse(await configured()).tools.web.search.engines[0]).toBe('tavily');

    const speaking = page.locator('section[aria-label="Voice"]');
    await speaking.locator('text=Set up voice').click();
    await speaking.locator('button >> text=Listening').click();
    await speaking.locator('button >> text=Groq').click();
    await speaking.locator('label >> text=API key of Groq').waitFor();
    await speaking.locator('input').fill(VOICE_KEY);
    await page.keyboard.press('Enter');
    await speaking.locator('text=/groq whisper.* listened in/').waitFor();
    await speaking.locator('text=/transcribed by groq whisper-large-v3-turbo/').waitFor();
    expect(voice.heard.map(({ name, model: heardBy }) => [name, heardBy])).toEqual([
      ['sound.wav', 'whisper-large-v3-turbo'],
    ]);
    expect(voice.complaints).toEqual([]);
    expect(await page.content()).not.toContain(VOICE_KEY);
    expect(await page.content()).not.toContain(SEARCH_KEY);
    expect(problems).toEqual([]);
  });

  it('adds tool servers: by a command with its tools listed, and by an address with a login', async () => {
    await using rig = await open();
    const { page, problems } = rig;
    const adding = page.locator('section[aria-label="Another tool server"]');
    const answer = async (label: string, text: string) => {
      await adding.locator('label', { hasText: label }).waitFor();
      await adding.locator('form.answer input').fill(text);
      await page.keyboard.press('Enter');
    };
    const begin = async (name: string, where: string) => {
      await adding.locator('text=Add a tool server').click();
      await answer('A short name', name);
      await adding.locator('button', { hasText: where }).click();
    };
    await begin('calc', 'On this machine');
    await answer('The command', `"${process.execPath}" '${CHILD}' calendar`);
    await answer('Variables with its keys', 'API_KEY=planted-key-of-a-tool');
    await adding.locator('text=calc is connected and has 10 tools.').waitFor();
    await adding.locator('text=/list_events: Lists the events/').waitFor();
    await adding.locator('button >> text=Each time').click();
    await adding.locator('text=Set up: calc').waitFor();
    await adding.locator('button >> text=Done').click();
    const calc = page.locator('[data-tool-server="calc"]');
    await calc.locator('text=connected, 10 tools').waitFor();
    await calc.locator('summary').click();
    await calc.locator('text=mcp_calc_delete_event').waitFor();
    expect(await calc.locator('select').inputValue()).toBe('always_ask');
    expect(await page.content()).not.toContain('planted-key-of-a-tool');
    await calc.locator('select').selectOption('ask_once');
    await eventually(async () =>
      expect(JSON.parse(await configured()).mcpServers.calc.trust).toBe('ask_once'),
    );
    await calc.locator('text=Switch off').click();
    await calc.locator('text=switched off').waitFor();

    await begin('broken', 'On this machine');
    await answer('The command', '/no/such/program');
    await answer('Variables with its keys', '');
    await adding.locator('.step-line.bad >> text=/broken is not connected/').waitFor();
    await adding.locator('button >> text=Close').click();
    expect(await configured()).not.toContain('/no/such/program');

    await begin('notes', 'Elsewhere');
    await answer('Its address', hosted.url);
    await answer('API key', '');
    await adding.locator('text=notes answers and asks for a login.').waitFor();
    await adding.locator('button >> text=Once for each tool').click();
    const link = adding.locator('a[target=_blank]');
    const consent = await fetch((await link.getAttribute('href')) ?? '');
    expect(consent.status).toBe(200);
    await adding.locator('text=Set up: notes').waitFor();
    const notes = page.locator('[data-tool-server="notes"]');
    await notes.locator('text=connected, 1 tool').waitFor();
    expect(hosted.state.violations).toEqual([]);
    await notes.locator('text=Log out').waitFor();
    await notes.locator('button >> text=Remove').click();
    await notes.locator('text=Remove notes for good').click();
    await notes.waitFor({ state: 'detached' });
    expect(Object.keys(JSON.parse(await configured()).mcpServers)).toEqual(['calc']);
    expect(problems).toEqual([]);
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
    await reconnects(page, '/setup/events', async () => {
      gateway = await home.start();
    });
    await eventually(async () =>
      expect(await page.locator('.view-problem:visible').count()).toBe(0),
    );
    await lark.locator('button >> text=Try again').click();
    await lark.locator('label >> text=App id').waitFor();
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    await fitsEachScreen(gateway, '#/setup', 'setup', async (page) => {
      await page.click('text=Connect another model');
      await page.waitForSelector('form[aria-label="A provider, with an API key"]');
      const lark = page.locator('[data-channel="lark"]');
      await lark.locator('text=Set up').click();
      await lark.locator('form.answer input').fill(HOSTILE);
      await page.keyboard.press('Enter');
      await lark.locator('label >> text=App secret').waitFor();
      await page.locator('[data-tool-server="calc"] button >> text=Remove').click();
      await page.locator('section[aria-label="Voice"] >> text=Set up voice').click();
      await page.locator('section[aria-label="Voice"] button >> text=Speaking').click();
      await page.locator('[data-tool-server="calc"]').scrollIntoViewIfNeeded();
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
      '/api/v1/setup/voice',
      '/api/v1/setup/search',
      '/api/v1/setup/tool-servers',
      '/api/v1/setup/tool-servers/{name}/login',
      '/api/v1/setup/answers/{question}',
    ]);
    const refused = await api('/api/v1/setup/events', undefined, { authorization: 'Bearer none' });
    expect(refused.status).toBe(401);
  });
});
