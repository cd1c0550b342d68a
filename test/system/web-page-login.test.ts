// Logging in to the web page in a real browser: by the printed link, by the token, in several tabs,
// and what is left of it once it was revoked.

import { expect, it } from 'vitest';
import { chromium, describeInChromium } from '../support/chromium.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const TOKEN = 'a-long-and-random-token';
const QUESTION = 'dialog.login-dialog';

const linkTo = async ({ address, http }: PageRig) =>
  `${address}/#login=${(await http.access.makeCode()).code}`;

describeInChromium('logging in to the web page', () => {
  it('takes one click on the link, holds over a reload and in other tabs, and leaves no trace', async () => {
    await using rig = await openPage({ token: TOKEN });
    await rig.page.waitForSelector(QUESTION);
    const asked: string[] = [];
    rig.page.context().on('request', (request) => asked.push(request.url()));
    const link = await linkTo(rig);
    const page = await rig.page.context().newPage();
    await page.goto(link);
    await page.waitForSelector('.welcome');
    expect(page.url()).not.toContain('login');
    await rig.page.waitForSelector(QUESTION, { state: 'detached' });
    await page.reload();
    await page.waitForSelector('.welcome');
    await page.fill('#text', 'hello');
    await page.press('#text', 'Enter');
    await eventually(async () => expect(rig.http.host.texts()).toEqual(['hello']));
    const code = link.split('=').at(-1) ?? '';
    expect(asked.filter((url) => url.includes(code))).toEqual([]);
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain(code);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.goBack().catch(() => undefined);
    expect(page.url()).not.toContain('login');
  });

  it('says of a used link that it is used, and takes a new one in the same tab', async () => {
    await using rig = await openPage({ token: TOKEN });
    const link = await linkTo(rig);
    await rig.page.goto(link);
    await rig.page.waitForSelector(QUESTION, { state: 'detached' });
    const other = await chromium().newContext();
    const page = await other.newPage();
    await page.goto(link);
    await page.waitForSelector(`${QUESTION} .problem >> text=used already`);
    await page.fill('#login', await linkTo(rig));
    await page.keyboard.press('Enter');
    await page.waitForSelector(QUESTION, { state: 'detached' });
    await page.waitForSelector('.welcome');
    // Also where the browser is logged in.
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForSelector(
      '#composer-note >> text=You are logged in. This link was used already',
    );
    await other.close();
  });

  it('takes the token too, and keeps it nowhere', async () => {
    await using rig = await openPage({ token: TOKEN });
    await rig.page.fill('#login', 'a-wrong-one');
    await rig.page.keyboard.press('Enter');
    await rig.page.waitForSelector(`${QUESTION} .problem >> text=Wrong token`);
    await rig.page.fill('#login', TOKEN);
    await rig.page.keyboard.press('Enter');
    await rig.page.waitForSelector(QUESTION, { state: 'detached' });
    await rig.say('hello');
    await rig.showsMessages('hello');
    await rig.page.reload();
    await rig.showsMessages('hello');
    const kept = await rig.page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
    );
    expect(kept).not.toContain(TOKEN);
  });

  it('ends in every open tab when it is revoked', async () => {
    await using rig = await openPage({ token: TOKEN });
    await rig.page.goto(await linkTo(rig));
    await rig.page.waitForSelector('.welcome');
    const second = await rig.page.context().newPage();
    await second.goto(rig.address);
    await second.waitForSelector('.welcome');
    await rig.http.access.revokeAll();
    await rig.page.waitForSelector(QUESTION);
    await second.waitForSelector(QUESTION);
    // The tab that finds out first tells why; the other one only sees that it is logged out.
    const told = [
      await rig.page.innerText(`${QUESTION} .problem`),
      await second.innerText(`${QUESTION} .problem`),
    ];
    expect(told).toContain('You were logged out.');
    await second.goto(await linkTo(rig));
    await rig.page.waitForSelector(QUESTION, { state: 'detached' });
    expect(rig.problems).toEqual([]);
  });

  it('needs nothing but the link that the first start prints', async () => {
    await using home = await makeTestHome({ gateway: { port: 0 } });
    const gateway = await home.start();
    const page = await chromium().newPage();
    await page.goto(gateway.link);
    await page.waitForSelector('.welcome');
    await page.fill('#text', 'hello');
    await page.press('#text', 'Enter');
    await page.waitForSelector('.said .message.agent');
    await page.close();
    expect(await home.logs()).not.toContain(gateway.link.split('=').at(-1));
  });
});
