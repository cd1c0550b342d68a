// The web page in a real browser: what a person sees and does.

import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { runningTool } from '../channels/local/local-rig.ts';
import { describeInChromium } from '../support/chromium.ts';
import { networkIsBack } from '../support/console-page.ts';
import { eventually, openPage } from '../support/web-page.ts';

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

describeInChromium('the web page', () => {
  it('sends with Enter, begins a line with Shift+Enter, and shows the answer as Markdown', async () => {
    await using rig = await openPage();
    await rig.page.fill('#text', 'first line');
    await rig.page.press('#text', 'Shift+Enter');
    await rig.page.keyboard.type('second line');
    await rig.page.press('#text', 'Enter');
    await rig.http.host.until((host) => host.texts().includes('first line\nsecond line'));
    await rig.answer('web:a#1', '**bold** and `code`\n\n| a | b |\n| - | - |\n| 1 | 2 |');
    await rig.page.waitForSelector('.agent table');
    expect(await rig.page.innerText('.agent strong')).toBe('bold');
    expect(await rig.page.innerText('.person .body')).toBe('first line\nsecond line');
    expect(await rig.page.inputValue('#text')).toBe('');
    await expect.poll(() => rig.page.evaluate('document.activeElement.id')).toBe('text');
    expect(rig.problems).toEqual([]);
  });

  it('shows the answer while it grows, what the agent does, and stops it with Esc', async () => {
    await using rig = await openPage();
    await rig.say('question');
    await rig.showsMessages('question');
    await rig.page.waitForSelector('.waiting .dots');
    const tools = [{ ...runningTool('read_file'), detail: 'notes.md' }];
    rig.show('web:a#1', '', { phase: 'tool', tools });
    await rig.page.waitForSelector('.tools .running >> text=notes.md');
    const done = tools.map((tool) => ({ ...tool, status: 'ok' as const }));
    rig.show('web:a#1', 'It says *tw', { tools: done });
    await rig.page.waitForSelector('.live .body >> text=It says');
    rig.show('web:a#1', 'It says *two*, ', { tools: done });
    await rig.page.waitForSelector('.live em >> text=two');
    await rig.page.keyboard.press('Escape');
    await eventually(async () => expect(await rig.http.stops).toEqual(['web/a']));
    const ended = { phase: 'ended', tools: done, result: { kind: 'stopped', answers: 1 } } as const;
    rig.show('web:a#1', 'It says *two*, ', ended);
    await rig.answer('web:a#1', 'It says *two*,');
    await rig.showsMessages('question', 'It says two,');
    await rig.page.waitForSelector('.said .tools .done');
    await rig.page.waitForSelector('.said .agent >> text=Stopped.');
    await rig.page.waitForSelector('.live', { state: 'detached' });
    await rig.page.waitForSelector('.stop', { state: 'hidden' });
    expect(rig.problems).toEqual([]);
  });

  it('changes nothing but the answer that grows, and keeps a step open when it is complete', async () => {
    await using rig = await openPage();
    const { page } = rig;
    await rig.answer('web:a#1', 'An **older** answer');
    await rig.showsMessages('An older answer');
    const tools = [{ ...runningTool('read_file'), status: 'ok' as const }];
    rig.show('web:a#2', 'It grows', { tools });
    await page.click('.live .tools summary');
    await page.evaluate(`
      kept = document.querySelector('.live .body p');
      changes = 0;
      new MutationObserver(() => changes++).observe(document.querySelector('.said'), {
        ...{ subtree: true, childList: true, attributes: true, characterData: true },
      });`);
    rig.show('web:a#2', 'It grows by *words*', { tools });
    await page.waitForSelector('.live em >> text=words');
    expect(await page.evaluate('[changes, kept.isConnected]')).toEqual([0, true]);
    await rig.answer('web:a#2', 'It grows by *words*.');
    await rig.showsMessages('An older answer', 'It grows by words.');
    await page.waitForSelector('.said .tools details[open]');
    expect(rig.problems).toEqual([]);
  });

  it('keeps the steps of an answer, what was stopped and what waits for approval over a reload', async () => {
    await using rig = await openPage();
    await rig.say('question');
    await rig.showsMessages('question');
    const done = { ...runningTool('read_file'), detail: 'notes.md', status: 'ok' } as const;
    const waits = { ...runningTool('exec'), detail: 'npm test', status: 'waiting' } as const;
    const result = { kind: 'stopped', answers: 1 } as const;
    rig.show('web:a#1', 'Half', { phase: 'ended', tools: [done, waits], result });
    await rig.answer('web:a#1', 'Half');
    await rig.showsMessages('question', 'Half');
    rig.show('web:a#2', 'Never', {
      ...{ phase: 'ended', tools: [{ ...done, preview: 'two lines' }] },
      result: { kind: 'stopped', answers: 0 },
    });
    await rig.showsMessages('question', 'Half', 'Never');
    rig.show('web:a#3', 'Whole', {
      ...{ phase: 'ended', tools: [done] },
      result: { kind: 'answered', answers: 1 },
    });
    await rig.answer('web:a#3', 'Whole');
    const check = async () => {
      await rig.showsMessages('question', 'Half', 'Never', 'Whole');
      const seen = await rig.page.locator('.said .agent').allInnerTexts();
      const [half = '', never = '', whole = ''] = seen.map((text) => text.replace(/\s+/g, ' '));
      expect(half).toMatch(/read_file notes\.md done exec npm test waiting for approval/);
      expect(half).toMatch(/Half Stopped\./);
      expect(never).toMatch(/read_file notes\.md two lines done Never Stopped\./);
      expect(whole).toMatch(/read_file notes\.md done Whole/);
      expect(whole).not.toContain('Stopped');
      expect(await rig.page.locator('.said .tools .failed').count()).toBe(0);
    };
    await check();
    await rig.page.reload();
    await check();
    expect(rig.problems).toEqual([]);
  });

  it('writes each paragraph in the direction of its script, and code from the left', async () => {
    await using rig = await openPage();
    await rig.say('مرحبا');
    await rig.answer('web:a#1', 'שלום\n\n- אחד\n\n> ציטוט\n\nEnglish\n\n```\nשלום\n```');
    await rig.page.waitForSelector('.agent pre');
    const directionOf = (selector: string) =>
      rig.page.locator(selector).evaluate((node: Element) => getComputedStyle(node).direction);
    for (const part of ['p >> text=שלום', 'ul', 'blockquote']) {
      expect(await directionOf(`.agent .body > ${part}`)).toBe('rtl');
    }
    expect(await directionOf('.agent p >> text=English')).toBe('ltr');
    expect(await directionOf('.agent pre')).toBe('ltr');
    expect(await directionOf('.person .body')).toBe('rtl');
  });

  it('shows what an answer was when it is withdrawn and begun again', async () => {
    await using rig = await openPage();
    rig.show('web:a#1', 'A first try that');
    await rig.page.waitForSelector('.live >> text=A first try');
    rig.show('web:a#1', 'A second', { notice: 'The model is asked again.' });
    await rig.page.waitForSelector('.live .activity >> text=asked again');
    await eventually(async () => expect(await rig.page.innerText('.live .body')).toBe('A second'));
  });

  it('goes on in the middle of an answer after the connection was lost', async () => {
    await using rig = await openPage();
    await rig.say('question');
    await rig.showsMessages('question');
    rig.show('web:a#1', 'The answer is ');
    await rig.page.waitForSelector('.live >> text=The answer is');
    await rig.proxy.set({ kind: 'refuse' });
    await rig.page.waitForSelector('#connection:not([hidden]) >> text=reconnecting');
    rig.show('web:a#1', 'The answer is forty-');
    await rig.http.post('/api/web/chats/a/messages', { clientId: 'other', text: 'said meanwhile' });
    await rig.proxy.set({ kind: 'pass' });
    await rig.page.waitForSelector('.live >> text=The answer is forty-');
    await rig.answer('web:a#1', 'The answer is forty-two.');
    await rig.showsMessages('question', 'said meanwhile', 'The answer is forty-two.');
    await rig.page.waitForSelector('#connection', { state: 'hidden' });
    await rig.page.waitForSelector('.live', { state: 'detached' });
  });

  it('forgets a turn that ended while the connection was lost', async () => {
    await using rig = await openPage();
    rig.show('web:a#1', 'Never finished');
    await rig.page.waitForSelector('.live >> text=Never finished');
    await rig.proxy.set({ kind: 'refuse' });
    rig.show('web:a#1', 'Never finished', { phase: 'ended' });
    await rig.proxy.set({ kind: 'pass' });
    await rig.page.waitForSelector('.live', { state: 'detached' });
  });

  it('keeps a message that could not be sent, over a reload too, and sends it once', async () => {
    await using rig = await openPage();
    await rig.say('already there');
    await rig.showsMessages('already there');
    await rig.page.route('**/messages', (route) => route.abort());
    await rig.say('kept');
    await rig.page.waitForSelector('.unsent >> text=Not sent yet');
    await rig.page.reload();
    await rig.page.waitForSelector('.unsent >> text=kept');
    await rig.page.unroute('**/messages');
    await rig.showsMessages('already there', 'kept');
    expect(rig.http.host.texts()).toEqual(['already there', 'kept']);
    await rig.page.waitForSelector('.unsent', { state: 'detached' });
  });

  it('sends once what arrived although its confirmation was lost', async () => {
    await using rig = await openPage();
    let lost = 0;
    await rig.page.route('**/messages', async (route) => {
      if (lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await rig.say('said once');
    await eventually(async () =>
      expect((await rig.http.host.duplicates) + rig.http.host.texts().length).toBe(1),
    );
    await rig.showsMessages('said once');
    await eventually(async () =>
      expect(await rig.page.evaluate('Object.keys(localStorage)')).not.toContainEqual(
        expect.stringContaining('unsent'),
      ),
    );
    expect(rig.http.host.texts()).toEqual(['said once']);
  });

  it('loses no message of two tabs that send at once', async () => {
    await using rig = await openPage();
    const other = await rig.page.context().newPage();
    await other.goto(`${rig.address}/#a`);
    const texts = Array.from({ length: 25 }, (_, number) => `message ${number}`);
    const sendAll = async (page: Page, name: string) => {
      for (const text of texts) {
        await page.fill('#text', `${text} of ${name}`);
        await page.press('#text', 'Enter');
      }
    };
    await Promise.all([sendAll(rig.page, 'one'), sendAll(other, 'two')]);
    for (const page of [rig.page, other])
      await page.waitForSelector('.unsent', { state: 'detached' });
    const sent = rig.http.host.texts();
    for (const name of ['one', 'two'])
      expect(sent.filter((text) => text.endsWith(name))).toEqual(
        texts.map((text) => `${text} of ${name}`),
      );
  });

  it('keeps a refused message, over a reload too, until it is taken back', async () => {
    await using rig = await openPage();
    await rig.page.setInputFiles('#composer input[type=file]', {
      ...{ name: 'list.txt', mimeType: 'text/plain', buffer: Buffer.from('milk') },
    });
    await rig.page.waitForSelector('#composer-files >> text=4 B');
    const json = { error: { message: 'No such chat.' } };
    await rig.page.route('**/messages', (route) => route.fulfill({ status: 410, json }));
    await rig.say('not wanted');
    await rig.page.waitForSelector('.refused >> text=Not sent: No such chat.');
    await rig.page.unroute('**/messages');
    await rig.page.reload();
    await rig.page.waitForSelector('.refused >> text=Not sent: No such chat.');
    await rig.say('wanted');
    await rig.showsMessages('wanted');
    await rig.page.getByRole('button', { name: 'Edit again' }).click();
    await rig.page.waitForSelector('#composer-files >> text=list.txt');
    expect(await rig.page.inputValue('#text')).toBe('not wanted');
    await rig.page.press('#text', 'Enter');
    await rig.showsMessages('wanted', 'not wanted');
    await rig.page.waitForSelector('.said >> text=list.txt');
  });

  it('waits with a message while the gateway has no room, and tells so', async () => {
    await using rig = await openPage();
    rig.http.host.isFull = true;
    await rig.say('patient');
    await rig.page.waitForSelector('.unsent >> text=Too many messages are waiting');
    rig.http.host.isFull = false;
    await networkIsBack(rig.page);
    await rig.showsMessages('patient');
  });

  it('lists the chats, opens one, begins a new one, and shows long ones by and by', async () => {
    await using rig = await openPage({
      chat: 'long',
      async prepare(http) {
        for (const chat of ['other', ...Array.from({ length: 230 }, () => 'long')]) {
          const clientId = `c${http.host.entries.length}`;
          await http.door.submit({ chat, clientId, text: `${chat} ${clientId}` });
        }
      },
    });
    await rig.page.waitForSelector('.said >> text=long c230');
    expect(await rig.page.locator('.said .message').count()).toBe(200);
    await rig.page.click('text=Show earlier messages');
    await rig.page.waitForSelector('.said >> text=/^long c1$/');
    await eventually(async () =>
      expect(await rig.page.locator('.said .message').count()).toBe(230),
    );
    await rig.page.click('#chats >> text=other c0');
    await rig.showsMessages('other c0');
    expect(await rig.page.innerText('#title')).toBe('other c0');
    await rig.page.click('#new-chat');
    await rig.page.waitForSelector('.welcome');
    await rig.say('a new beginning');
    await rig.page.waitForSelector('#chats [aria-current] >> text=a new beginning');
    await rig.page.goBack();
    await rig.showsMessages('other c0');
  });

  it('tells which model answers, and how to connect one when it is the demo', async () => {
    await using real = await openPage({ model: 'anthropic/claude' });
    await real.page.waitForSelector('.welcome >> text=anthropic/claude');
    expect(await real.page.locator('.notice').count()).toBe(0);
    await using demo = await openPage({ model: 'demo/demo' });
    await demo.page.waitForSelector('.notice >> text=not an AI model');
    await demo.page.click('.ideas >> text=what time is it');
    await demo.http.host.until((host) => host.texts().includes('what time is it'));
    await demo.page.waitForSelector('.welcome', { state: 'detached' });
    await demo.page.waitForSelector('.notice button >> text=Connect a model');
  });

  it('asks for the setup once when it is opened, for the model and the navigation', async () => {
    await using rig = await openPage();
    await rig.page.goto('about:blank');
    const asked: string[] = [];
    rig.page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    // What the navigation looks at by itself it looks at last.
    const looked = rig.page.waitForResponse('**/api/v1/people');
    await rig.page.goto(`${rig.address}/#a`);
    await rig.page.waitForSelector('#model-line >> text=some/model');
    await looked;
    expect(asked.filter((path) => path === '/api/v1/setup')).toHaveLength(1);
  });

  it('colours code and draws formulas, with chunks that are loaded then, and leaves money as text', async () => {
    await using rig = await openPage();
    const { page } = rig;
    const chunks = () =>
      page.evaluate(
        "performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => /highlight|formula-/.test(name))",
      ) as Promise<string[]>;
    await rig.answer('web:a#1', 'It costs $5, that is US$6 or $7. `$x^2$` stays.');
    await rig.showsMessages('It costs $5, that is US$6 or $7. $x^2$ stays.');
    expect(await page.locator('.formula').count()).toBe(0);
    expect(await chunks()).toEqual([]);
    const hostile = '\\href{javascript:alert(1)}{x} \\class{unseen}{y}';
    await rig.answer(
      'web:a#2',
      [
        '```python\ndef hello(name):\n    return f"<b>{name}</b>"  # hi\n```',
        '```nonsense\n<img src=x onerror=alert(1)>\n```',
        'Euler: $e^{i\\pi} + 1 = 0$ and \\(a_1\\).',
        '$$\n\\int_0^1 x^2 \\, dx = \\frac{1}{3}\n$$',
        `$$${hostile}$$`,
        '$$\\def\\a{\\a\\a}\\a$$',
      ].join('\n\n'),
    );
    await page.waitForSelector('.hljs-keyword >> text=def');
    await page.waitForSelector('.formula.display math mfrac');
    await eventually(async () => expect(await page.locator('.formula math').count()).toBe(3));
    expect((await chunks()).length).toBeGreaterThan(1);
    expect(await page.locator('.formula a, .formula .unseen').count()).toBe(0);
    expect(await page.locator('.formula > code').allInnerTexts()).toEqual([
      hostile,
      '\\def\\a{\\a\\a}\\a',
    ]);
    expect(await page.innerText('.code-block >> nth=0 >> pre')).toBe(
      'def hello(name):\n    return f"<b>{name}</b>"  # hi',
    );
    expect(rig.problems).toEqual([]);
  });

  it('works on a phone: no sideways scrolling, the list of chats as a drawer', async () => {
    await using rig = await openPage({ context: PHONE });
    await rig.say('x'.repeat(200));
    await rig.answer(
      'web:a#1',
      `${'y'.repeat(300)}\n\n\`\`\`\n${'z'.repeat(300)}\n\`\`\`\n\n|${' wide |'.repeat(12)}\n|${' - |'.repeat(12)}\n|${' cell |'.repeat(12)}`,
    );
    await rig.page.waitForSelector('.agent table');
    expect(await rig.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    expect(
      await rig.page.evaluate('document.getElementById("scroll").scrollWidth'),
    ).toBeLessThanOrEqual(360);
    expect(await rig.page.isVisible('#sidebar')).toBe(false);
    await rig.page.tap('.menu');
    await rig.page.waitForSelector('#sidebar', { state: 'visible' });
    await rig.page.keyboard.press('Escape');
    await rig.page.waitForSelector('#sidebar', { state: 'hidden' });
  });

  it('can be used with the keyboard alone', async () => {
    await using rig = await openPage();
    await rig.page.waitForSelector('.welcome');
    // The first stop of the Tab key.
    await rig.page.focus('body :is(a, button):first-child');
    await rig.page.keyboard.press('Enter');
    await rig.page.keyboard.type('typed without a mouse');
    await rig.page.keyboard.press('Enter');
    await rig.showsMessages('typed without a mouse');
    const unnamed = await rig.page.evaluate(
      `[...document.querySelectorAll('button, a, textarea')]
        .filter((one) => !(one.getAttribute('aria-label') || one.innerText.trim())).length`,
    );
    expect(unnamed).toBe(0);
  });

  it('leaves whoever reads further up where they are, and offers the way down', async () => {
    await using rig = await openPage();
    await rig.answer('web:a#1', 'line\n\n'.repeat(80));
    // It is followed to its end first.
    const position = () => rig.page.evaluate('document.getElementById("scroll").scrollTop');
    await expect.poll(position).toBeGreaterThan(0);
    await rig.page.evaluate('document.getElementById("scroll").scrollTop = 0');
    // The page hears of it with its next picture.
    await rig.page.evaluate(
      'new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(() => seen(0))))',
    );
    const widthOf = (selector: string) =>
      rig.page.locator(selector).evaluate((node: Element) => node.getBoundingClientRect().width);
    const before = await widthOf('#scroll');
    await rig.answer('web:a#2', 'something new');
    await rig.page.waitForSelector('#to-end', { state: 'visible' });
    expect(await position()).toBe(0);
    expect(await widthOf('#scroll')).toBe(before);
    expect(await widthOf('#to-end')).toBeLessThan(before);
    await rig.page.click('#to-end');
    await rig.page.waitForSelector('.agent >> text=something new', { state: 'visible' });
    await rig.page.waitForSelector('#to-end', { state: 'hidden' });
  });
});
