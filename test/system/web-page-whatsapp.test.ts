// Linking WhatsApp on the web page: the real program, a real browser, and the simulated server with
// the phone that scans what the browser shows.

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chromium, describeInChromium } from '../support/chromium.ts';
import { makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { readSvgQr } from '../support/qr-reader.ts';
import { eventually } from '../support/web-page.ts';
import type { WhatsAppServer } from '../support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import { trustVariables } from '../support/whatsapp-server/trust.ts';

const CARD = '[data-channel="whatsapp"]';
const LINK = `${CARD} button:text-is("Link")`;

describeInChromium('linking WhatsApp on the web page', () => {
  let server: WhatsAppServer;

  beforeAll(async () => {
    server = await startWhatsAppServer();
  });

  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  const homeWithWhatsApp = () =>
    makeTestHome({
      channels: { whatsapp: { enabled: true, socketUrl: server.url } },
      gateway: { port: 0 },
    });

  async function openLogin(home: TestHome): Promise<Page> {
    const gateway = await home.start(trustVariables(server));
    const page = await chromium().newPage();
    await page.goto(gateway.link);
    await page.waitForSelector('.welcome');
    await page.goto(`${gateway.address}/#/setup`);
    await page.click(LINK);
    return page;
  }

  it('works by scanning the picture; a phone that unlinks is told, and linked again', async () => {
    await using home = await homeWithWhatsApp();
    const phone = await server.phone({ number: '491511234567' });
    const page = await openLogin(home);
    await scan(page, (qr) => phone.scan(qr));
    await page.click('text=Done');
    await page.waitForSelector(`${CARD} .channel-state >> text=On as +491511234567`);
    await phone.online();
    await phone.unlink();
    await page.waitForSelector(`${CARD} .channel-state >> text=logged this device out`);
    await page.click(LINK);
    await scan(page, (qr) => phone.scan(qr));
    expect(phone.counts.registrations).toBe(2);
    await page.close();
  });

  it('works by typing the code on the phone, also after an attempt that was given up', async () => {
    await using home = await homeWithWhatsApp();
    const phone = await server.phone({ number: '491517654321' });
    const page = await openLogin(home);
    await shownCode(page);
    await page.click('text=Close');
    await page.waitForSelector(`${CARD} .channel-state >> text=/linked/i`);
    await page.click(LINK);
    await phone.typesCode(await shownCode(page));
    await page.waitForSelector('text=WhatsApp is linked: +491517654321');
    await page.close();
  });

  async function scan(page: Page, camera: (qr: string) => Promise<void>) {
    await page.waitForSelector('.login-qr');
    await camera(readSvgQr((await page.getAttribute('.login-qr', 'src')) ?? ''));
    await page.waitForSelector('text=WhatsApp is linked: +491511234567');
  }

  async function shownCode(page: Page): Promise<string> {
    await page.fill('#login-number', '+49 151 7654321');
    await page.click('button:has-text("Get a code")');
    await eventually(async () =>
      expect(await page.innerText('.login-typed')).toMatch(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/),
    );
    return (await page.innerText('.login-typed')).replace('-', '');
  }
});
