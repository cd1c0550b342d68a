// The web page and the whole program behind it, killed in the middle of an answer.

import { appendFile, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { chromium, describeInChromium } from '../support/chromium.ts';
import { networkIsBack } from '../support/console-page.ts';
import { freePorts } from '../support/free-ports.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { callTools, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { eventually } from '../support/web-page.ts';

const PACKAGE = process.env['NANOBOT_TEST_PACKAGE'] ?? '';

const configWith = (model: LlmServer, port: number) => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  providers: { openai: { apiKey: 'sk-page', apiBase: model.openaiBase } },
  coalesce: { quietMs: 50 },
  gateway: { port },
});

/** The packed program, whose page gets another version by `change`. */
async function copyOfPackage() {
  const root = await mkdtemp(join(tmpdir(), 'nanobot-version-'));
  await cp(PACKAGE, root, { recursive: true, verbatimSymlinks: true });
  return {
    root,
    change: () => appendFile(join(root, 'dist/page/built/page.css'), '/* another version */'),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

describeInChromium('the web page before the whole program', () => {
  it('shows one whole answer although the gateway was killed while it wrote', async () => {
    const never = new Promise(() => undefined);
    await using model = await startLlmServer();
    model.script(
      callTools({ name: 'time', arguments: {} }),
      say('It is noon.'),
      { chunks: ['**Half** an ', never] },
      say('**Half** an answer, and the other half.'),
    );
    const [port = 0] = await freePorts(1);
    await using home = await makeTestHome(configWith(model, port));
    const first = await home.start();
    const page = await chromium().newPage();
    await page.goto(first.link);
    await page.waitForSelector('.welcome >> text=openai/sim-1');
    await page.fill('#text', 'what time is it');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .tools >> text=time');
    await page.fill('#text', 'and the answer?');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.live strong >> text=Half');
    await first.kill();
    await page.fill('#text', '/help');
    await page.press('#text', 'Enter');
    await page.waitForSelector('#connection:not([hidden])');
    await home.start();
    await networkIsBack(page);
    const said = page.locator('.said .message.agent');
    await said.filter({ hasText: 'Half an answer, and the other half.' }).waitFor();
    await said.filter({ hasText: 'This conversation: /new' }).waitFor();
    await eventually(async () => expect(await said.count()).toBe(3));
    const texts = await page.locator('.said .message.person .body').allInnerTexts();
    expect(texts).toEqual(['what time is it', 'and the answer?', '/help']);
    await page.waitForSelector('.live', { state: 'detached' });
    await page.reload();
    await eventually(async () => expect(await said.count()).toBe(3));
    const call = page.locator('.said .tools .done details');
    await call.locator('summary').click();
    await call.locator('pre').first().waitFor();
    const inside = await call.locator('.tool-opened').innerText();
    expect(inside).toMatch(/Arguments\s+\{\}\s+Result after \d[\d.]* m?s\s+\S/);
    expect(inside).toMatch(/The whole answer: .*sim-1 · .* tokens/);
    model.assertDone();
    await page.close();
  });

  it('shows a call that waits for approval as waiting, and the run and its output after it', async () => {
    await using model = await startLlmServer();
    const path = 'skills/eve/SKILL.md';
    model.script(
      callTools({ name: 'write_file', arguments: { path, content: 'be kind' } }),
      say('It waits.'),
      say('It is written.'),
    );
    const [port = 0] = await freePorts(1);
    await using home = await makeTestHome(configWith(model, port));
    const gateway = await home.start();
    const page = await chromium().newPage();
    await page.goto(gateway.link);
    await page.waitForSelector('.welcome >> text=openai/sim-1');
    await page.fill('#text', 'write the skill');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .tools .asks >> text=waiting for approval');
    expect(await page.locator('.tools .failed').count()).toBe(0);
    await page.click('.said .choices >> text=Allow once');
    const check = async () => {
      await page.waitForSelector('.said >> text=It is written.');
      const answer = page.locator('.said .message.agent').filter({ hasText: 'It is written.' });
      const tools = (await answer.locator('.tools').innerText()).replace(/\s+/g, ' ');
      expect(tools).toMatch(/write_file skills\/eve\/SKILL\.md Created .*done/);
    };
    await check();
    await page.reload();
    await check();
    await page.waitForSelector('.said .tools .asks');
    model.assertDone();
    await page.close();
  });

  it('goes on in the new version when code that it has not loaded is gone after an update', async () => {
    await using copy = await copyOfPackage();
    const [port = 0] = await freePorts(1);
    await using home = await makeTestHome({ gateway: { port } }, copy.root);
    const first = await home.start();
    const page = await chromium().newPage();
    await page.goto(first.link);
    await page.waitForSelector('.welcome');
    await page.fill('#text', 'not sent yet');
    const version = () => page.getAttribute('script[src]', 'src');
    const before = await version();
    await first.kill();
    await copy.change();
    const second = await home.start();
    await page.click('#pages a[href="#/usage"]');
    await page.waitForSelector('.view h1 >> text=Usage');
    expect(new URL(page.url()).hash).toBe('#/usage');
    const after = await version();
    expect(after).not.toBe(before);
    await page.click('#pages a[href="#/chat"]');
    await expect.poll(() => page.inputValue('#text')).toBe('not sent yet');
    // While the gateway is away, in a browser that has kept nothing.
    const other = await chromium().newPage();
    await other.goto(second.link);
    await other.waitForSelector('.welcome');
    await second.kill();
    await other.click('#pages a[href="#/usage"]');
    await other.waitForSelector('#console [role="alert"]');
    await copy.change();
    await home.start();
    await other.waitForSelector('.view h1 >> text=Usage');
    expect(await other.getAttribute('script[src]', 'src')).not.toBe(after);
    await other.close();
    await page.close();
  });

  it('loads itself again once, and no more, for code that stays broken beside code that works', async () => {
    await using home = await makeTestHome({ gateway: { port: 0 } });
    const { link } = await home.start();
    const page = await chromium().newPage();
    await page.goto(link);
    await page.waitForSelector('.welcome');
    let opened = 0;
    page.on('load', () => {
      opened += 1;
    });
    const looks: string[] = [];
    page.on('response', (response) => {
      const isOfPage = new URL(response.url()).pathname === '/';
      if (isOfPage && response.request().resourceType() === 'fetch') looks.push(response.url());
    });
    await page.route(/\/built\/[\w-]+\/chats-/, (route) => route.abort());
    await page.evaluate(`location.hash = '#/usage'`);
    await page.reload();
    await page.waitForSelector('.view h1 >> text=Usage');
    await page.click('#pages a[href="#/chat"]');
    await page.waitForSelector('#talk [role="alert"] >> text=could not be loaded');
    expect(looks).toHaveLength(2);
    await page.click('#pages a[href="#/people"]');
    await page.waitForSelector('.view h1 >> text=People');
    expect(opened).toBe(2);
    await page.close();
  });
});
