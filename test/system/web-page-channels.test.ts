// The channels of the setup in a real browser: their state in words, and linking an account by a QR code
// or a typed code. The gateway behind it is scripted, so every step can be held.

import { expect, it } from 'vitest';
import type { ChannelReport } from '../../src/kernel/gateway.ts';
import { off, type ScriptedControl, scriptedControl, unlinked } from '../http/channel-control.ts';
import { describeInChromium } from '../support/chromium.ts';
import { readSvgQr } from '../support/qr-reader.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const LINK = '[data-channel="pigeon"] button:text-is("Link")';
const MARKED = '#pages a.news';
const QR = '.login-qr';
const soon = () => Date.now() + 60_000;

const running = (name: string): ChannelReport => ({
  ...unlinked(name),
  status: { kind: 'running', activeAt: Date.now(), account: '+491511234567' },
});

async function openPanel(rig: PageRig) {
  await rig.page.goto(`${rig.address}/#/setup`);
  await rig.page.waitForSelector('.channel-card');
}

/** Opens the login of the pigeon; its first step is the test's to give. */
async function openLogin(rig: PageRig, control: ScriptedControl) {
  await openPanel(rig);
  await rig.page.click(LINK);
  await eventually(async () => expect(control.logins).toHaveLength(1));
}

async function shownQr(rig: PageRig): Promise<string> {
  return readSvgQr((await rig.page.getAttribute(QR, 'src')) ?? '');
}

describeInChromium('the channels on the web page', () => {
  it('stand there with their state in words, and what to do where there is something', async () => {
    const carrier: ChannelReport = {
      ...unlinked('carrier'),
      canLogIn: false,
      status: { kind: 'degraded', reason: 'no wind' },
    };
    const control = scriptedControl(off('dove'), carrier, running('pigeon'));
    await using rig = await openPage({ control });
    await openPanel(rig);
    const texts = await rig.page.locator('.channel-card').allInnerTexts();
    expect(texts.map((text) => text.split('\n').filter((line) => line !== ''))).toEqual([
      ['DOVE', 'Off', 'Turn it on with: nanobot channels login dove'],
      ['CARRIER', 'Trying again: no wind', 'Restart'],
      ['PIGEON', 'On as +491511234567'],
    ]);
    await rig.page.click('text=Restart');
    await eventually(async () => expect(control.restarts).toEqual(['carrier']));
    expect(rig.problems).toEqual([]);
  });

  it('link by a QR code that can be read, is renewed, and gives way to success', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await openPage({ control });
    await rig.page.waitForSelector(MARKED);
    await openLogin(rig, control);
    control.step({ kind: 'show_qr', qr: 'https://example.org/#first', expiresAt: soon() });
    await eventually(async () => expect(await shownQr(rig)).toBe('https://example.org/#first'));
    const size = await rig.page.locator(QR).evaluate((image) => image.clientWidth);
    expect(size).toBeGreaterThan(250);
    const isDrawn = "document.querySelector('.login-qr').naturalWidth > 0";
    await eventually(async () => expect(await rig.page.evaluate(isDrawn)).toBe(true));
    control.step({ kind: 'show_qr', qr: 'https://example.org/#second', expiresAt: soon() });
    await eventually(async () => expect(await shownQr(rig)).toBe('https://example.org/#second'));
    control.step({ kind: 'progress', text: 'the phone has confirmed' });
    await rig.page.waitForSelector('.login-progress >> text=The phone has confirmed');
    control.set(running('pigeon'));
    control.step({ kind: 'done', account: '+491511234567' });
    await rig.page.waitForSelector('text=PIGEON is linked: +491511234567');
    await rig.page.click('text=Done');
    await rig.page.waitForSelector('.channel-card >> text=On as +491511234567');
    expect(await rig.page.locator(LINK).count()).toBe(0);
    await rig.page.click('#pages a[href="#/chat"]');
    await rig.page.waitForSelector('#pages a[href="#/setup"]:not(.news)');
    expect(rig.problems).toEqual([]);
  });

  it('link by a code to type, for a number written as people write it', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await openPage({ control });
    await openLogin(rig, control);
    await rig.page.fill('#login-number', '0151 1234567');
    await rig.page.press('#login-number', 'Enter');
    await rig.page.waitForSelector('.problem >> text=country code');
    expect(control.logins).toHaveLength(1);
    await rig.page.fill('#login-number', '+49 (151) 123-4567');
    await rig.page.press('#login-number', 'Enter');
    await eventually(async () => expect(control.logins).toHaveLength(2));
    await eventually(async () => expect(control.logins[0]?.signal.aborted).toBe(true));
    expect(control.logins[1]?.options).toEqual({ phoneNumber: '491511234567' });
    control.step({ kind: 'show_qr', qr: 'https://example.org/#qr', expiresAt: soon() });
    control.step({ kind: 'show_code', code: 'K7QX4M2P', phoneNumber: '491511234567' });
    await rig.page.waitForSelector('.login-typed >> text=K7QX-4M2P');
    expect(await rig.page.locator(QR).count()).toBe(1);
  });

  it.each([
    ['Close', (rig: PageRig) => rig.page.click('text=Close')],
    ['going to another view', (rig: PageRig) => rig.page.click('#pages a[href="#/chat"]')],
    ['leaving the page', (rig: PageRig) => rig.page.goto('about:blank')],
  ])('give an attempt up by %s', async (_name, leave) => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await openPage({ control });
    await openLogin(rig, control);
    control.step({ kind: 'show_qr', qr: 'https://example.org/#qr', expiresAt: soon() });
    await rig.page.waitForSelector(QR);
    await leave(rig);
    await eventually(async () => expect(control.logins[0]?.signal.aborted).toBe(true));
  });

  it('tell why it failed and what to do, and try again with what was asked', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await openPage({ control });
    await openLogin(rig, control);
    await rig.page.fill('#login-number', '+491511234567');
    await rig.page.press('#login-number', 'Enter');
    await eventually(async () => expect(control.logins).toHaveLength(2));
    const reason = 'nobody came <img src=x onerror="window.pwned=1">';
    control.step({ kind: 'failed', reason, remedy: 'Run `fetch it` yourself.' });
    await rig.page.waitForSelector('[role="alert"] >> text=Nobody came <img');
    expect(await rig.page.innerText('.login-remedy')).toBe('Run fetch it yourself.');
    await rig.page.keyboard.press('Enter');
    await eventually(async () => expect(control.logins).toHaveLength(3));
    expect(control.logins[2]?.options).toEqual({ phoneNumber: '491511234567' });
    expect(await rig.page.evaluate('window.pwned')).toBeUndefined();
  });

  it('say so when the line to the gateway is lost', async () => {
    const control = scriptedControl(unlinked('pigeon'));
    await using rig = await openPage({ control });
    await openLogin(rig, control);
    await rig.http.close();
    await rig.page.waitForSelector('.login-result');
    await rig.page.waitForSelector('text=Try again');
  });

  it('can be used with the keyboard alone, and the focus comes back', async () => {
    const control = scriptedControl(off('dove'), unlinked('pigeon'));
    await using rig = await openPage({ control });
    await openPanel(rig);
    await rig.page.focus(LINK);
    await rig.page.keyboard.press('Enter');
    await eventually(async () => expect(control.logins).toHaveLength(1));
    await rig.page.focus('text=Close');
    await rig.page.keyboard.press('Enter');
    await expect.poll(() => rig.page.evaluate('document.activeElement.textContent')).toBe('Link');
  });

  it('fit a phone', async () => {
    const control = scriptedControl(off('dove'), unlinked('pigeon'));
    await using rig = await openPage({ control, context: PHONE });
    await openLogin(rig, control);
    control.step({ kind: 'show_qr', qr: 'https://example.org/#qr', expiresAt: soon() });
    control.step({ kind: 'show_code', code: 'K7QX4M2P', phoneNumber: '491511234567' });
    await rig.page.waitForSelector('.login-typed');
    expect(await rig.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    const body = rig.page.locator('#console');
    expect(await body.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
  });
});
