// The inbox of the web page: conversations of all channels, live; one with its tool calls, costs and the
// life of its messages; search; hostile contents; a gateway that is killed and started again.

import { expect, it } from 'vitest';
import {
  messageTrace,
  sessionList,
  sessionTurns,
} from '../../src/features/conversations/rules/views.ts';
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
const WRITTEN = `Ada ${HOSTILE}`;

describeInChromium('the inbox of the web page', () => {
  const { world, api, open } = consoleWorld({
    respond: ({ lastUserText, toolResults }) =>
      lastUserText.includes('read it') && toolResults.length === 0
        ? { toolCalls: [{ name: 'read_file', arguments: { path: 'notes.md' } }] }
        : { chunks: [`You said: ${lastUserText}`] },
    config: {
      models: { prices: [{ model: 'openai/sim-1', input: 1000, cached: 1000, output: 2000 }] },
    },
    files: { 'notes.md': `Notes ${HOSTILE}` },
    pair: { [ADA]: 'owner' },
  });

  it('shows a conversation as it happens, with its tools, costs and the life of a message', async () => {
    await using rig = await open('#/sessions');
    const { page, problems } = rig;
    await page.waitForSelector('text=No conversations yet');
    world().telegram.say(ADA, `Please read it ${WRITTEN}`);
    await world().hears(ADA, /^You said/);
    await page.click('.rows a >> text=telegram:1001');
    await page.waitForSelector('.spoken.agent >> text=You said');
    expect(page.url()).toContain('#/sessions/telegram%3A1001');
    expect(await page.innerText('.spoken.person .spoken-text')).toContain(WRITTEN);
    await page.waitForSelector('.turn-facts >> text=/sim-1 · 2 model calls · .* tokens · \\d/');
    await page.click('.tool-call summary');
    expect(await page.innerText('.tool-call pre >> nth=0')).toContain('"path": "notes.md"');
    expect(await page.innerText('.tool-call pre >> nth=1')).toContain(`Notes ${HOSTILE}`);
    // It is read once, when it is opened.
    await world().hasNo('outbound');
    await page.click('summary >> text=What happened');
    await page.waitForSelector('.life >> text=Message: it was saved to disk');
    await page.waitForSelector('.life >> text=Answer: it was delivered');
    const spans = await page.locator('.timeline li > :first-child').allInnerTexts();
    expect(spans.map((text) => text.replaceAll(/\s+/g, ' ').trim())).toEqual([
      'Admitted and stored',
      'Waited',
      'Model openai/sim-1',
      'Tool read_file',
      'Model openai/sim-1',
      'Answer recorded',
      'Waited to be sent',
      'Sent and confirmed',
    ]);
    world().telegram.say(ADA, 'And now?');
    await page.waitForSelector('.spoken.agent >> text=You said: And now?');
    world().telegram.say(ADA, 'Is **this** drawn?');
    await page.waitForSelector('.spoken.agent strong >> text=this');
    await page.waitForSelector('.spoken.person >> text=Is **this** drawn?');
    await page.goBack();
    await page.waitForSelector('.rows a >> text=/\\d messages/');
    const mark = `document.querySelector('.mark use').getBBox().width`;
    await expect.poll(() => page.evaluate(mark)).toBeGreaterThan(0);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('finds words in all conversations', async () => {
    await using rig = await open('#/sessions');
    const { page } = rig;
    const search = async (words: string) => {
      // The page focuses its heading when it opens.
      await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1');
      await page.fill('.view [type="search"]', words);
      await page.keyboard.press('Enter');
    };
    await search('and now');
    await page.waitForSelector('[role="status"] >> text=Found');
    await page.click('.rows a >> text=You said: And now?');
    await page.waitForSelector('.spoken.agent >> text=You said: And now?');
    await page.click('text=All conversations');
    await search('nobody said this');
    await page.waitForSelector('text=Nothing was found.');
    await page.fill('.view [type="search"]', '');
    await page.waitForSelector('.rows a >> text=telegram:1001');
  });

  it('shows earlier messages, and goes on after the gateway was killed', async () => {
    for (const n of Array.from({ length: 35 }, (_, index) => index)) {
      world().telegram.say(ADA, `number ${n}!`);
      await world().hears(ADA, new RegExp(`You said: number ${n}!`));
    }
    await using rig = await open(`#/sessions/telegram:${ADA}`);
    const { page } = rig;
    await page.waitForSelector('text=number 34!');
    await expect.poll(() => page.locator('.turn').count()).toBe(30);
    await page.click('text=Show earlier messages');
    await page.waitForSelector('.spoken >> text=Please read it');
    await expect.poll(() => page.locator('.turn').count()).toBe(38);
    // Code that is missing then would make the page load itself again.
    await page.waitForSelector('#text', { state: 'attached' });
    await world().gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    await world().start();
    await networkIsBack(page);
    world().telegram.say(ADA, 'after the start');
    await page.waitForSelector('text=You said: after the start');
    await eventually(async () => expect(await page.isHidden('.view-problem')).toBe(true));
    await expect.poll(() => page.locator('.turn').count()).toBe(39);
  });

  it('shows what was said before the conversation began anew', async () => {
    await world().asks(ADA, '/new', /new/i);
    await using rig = await open(`#/sessions/telegram:${ADA}`);
    const { page } = rig;
    await page.waitForSelector('text=Nothing was said since this conversation began anew.');
    await page.click('text=Show what was said before /new');
    await page.waitForSelector('.spoken >> text=after the start');
    await page.waitForSelector('.reset >> text=Began anew');
    const heard = world().texts(ADA).length;
    world().telegram.say(ADA, 'a new beginning');
    await world().hears(ADA, /a new beginning/, heard);
    await page.waitForSelector('.turn:last-child >> text=You said: a new beginning');
    await page.click('text=Show earlier messages');
    await page.waitForSelector('.spoken >> text=Please read it');
  });

  it('keeps an answer that was asked for again, or taken back, folded in its place', async () => {
    await using rig = await open('#/sessions');
    const { page } = rig;
    await page.goto(`${world().gateway.address}/#redone`);
    await page.fill('#text', 'What is it?');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.waitForSelector('details.replaced');
    await page.waitForSelector('.said .agent:not(.replaced *) >> text=You said: What is it?');
    await page.goto(`${world().gateway.address}/#/sessions/web:redone`);
    await page.waitForSelector('.turn > .spoken.agent >> text=You said: What is it?');
    await expect.poll(() => page.locator('.turn').count()).toBe(2);
    const earlier = page.locator('.turn > .undone');
    expect(await earlier.count()).toBe(1);
    expect(await earlier.locator('.spoken').first().isVisible()).toBe(false);
    await earlier.getByText('the model does not see this').click();
    expect(await earlier.locator('.spoken.agent').innerText()).toContain('You said: What is it?');
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    const heard = world().texts(ADA).length;
    world().telegram.say(ADA, `Please read it ${LONG_WORD}`);
    await world().hears(ADA, /^You said/, heard);
    await using screens = await openScreens(world().gateway);
    await screens.fit('#/sessions', 'sessions-list', async (page) => {
      await page.waitForSelector('.rows a');
    });
    await screens.fit(`#/sessions/telegram:${ADA}`, 'sessions-one', async (page) => {
      await page.locator('.tool-call summary').last().click();
      await page.locator('summary >> text=What happened').last().click();
      await page.waitForSelector('.life');
    });
  });

  it('is a documented API that answers as it says, to owners only', async () => {
    const key = encodeURIComponent(`telegram:${ADA}`);
    const list = sessionList.parse((await api('/api/v1/sessions')).body);
    expect(list.sessions.map(({ key }) => key).toSorted()).toEqual([
      `telegram:${ADA}`,
      'web:redone',
    ]);
    const { turns } = sessionTurns.parse((await api(`/api/v1/sessions/${key}/turns/1000000`)).body);
    const asked = turns.at(-1)?.steps.find((step) => step.kind === 'said')?.message ?? '';
    const path = `/api/v1/messages/${encodeURIComponent(asked)}/trace`;
    expect(messageTrace.parse((await api(path)).body).state).toBe('done');
    const refusals = await Promise.all([
      api('/api/v1/sessions/nothing/turns/1'),
      api(`/api/v1/sessions/${key}/turns/x`),
      api('/api/v1/sessions/search', { words: ' ' }),
      api('/api/v1/messages/none/trace'),
      api('/api/v1/sessions', undefined, { authorization: 'Bearer none' }),
    ]);
    expect(refusals.map(({ status }) => status)).toEqual([400, 400, 400, 404, 401]);
  });
});
