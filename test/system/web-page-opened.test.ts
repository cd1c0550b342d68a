// Views of the console opened by their address: what they ask for is asked at once, and nothing is asked
// twice. The code of the chats waits.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium } from '../support/chromium.ts';
import { openConsole } from '../support/console-page.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';

const VIEWS = [
  ...['configuration', 'memory', 'operations', 'people', 'runs', 'schedules', 'sessions'],
  ...['setup', 'usage'],
];

const LATER = /^\/api\/v1\/(?:people$|setup$|chats\b)/;

describeInChromium('a view opened by its address', () => {
  let home: TestHome;
  let gateway: GatewayProcess;

  beforeAll(async () => {
    home = await makeTestHome({ gateway: { port: 0 } });
    gateway = await home.start();
  });

  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await home?.[Symbol.asyncDispose]();
  });

  it('has its data asked for beside its code, once, and loads the chats afterwards', async () => {
    await using rig = await openConsole(gateway, '#/setup');
    const { page } = rig;
    for (const view of VIEWS) {
      await page.goto('about:blank');
      const asked: string[] = [];
      const note = (request: { url(): string }) => asked.push(new URL(request.url()).pathname);
      page.on('request', note);
      await page.goto(`${gateway.address}/#/${view}`);
      await page.waitForSelector('.view :is(.card, .rows li, .empty, .section, .settings)');
      page.off('request', note);
      // On a slow machine what the page itself asks for afterwards is among them.
      const data = asked.filter((path) => path.startsWith('/api/') && !LATER.test(path));
      expect([view, data]).toEqual([view, [...new Set(data)]]);
      const code = asked.findIndex((path) => /\/main-/.test(path));
      const first = asked.findIndex((path) => path.startsWith('/api/'));
      const signals = asked.findIndex((path, index) => index > code && path.endsWith('.js'));
      expect([view, first - code]).toEqual([view, 1]);
      expect([view, signals === -1 || signals > first]).toEqual([view, true]);
    }
    expect(rig.problems).toEqual([]);
  });

  it('is kept by the browser but for the page itself, which asks again', async () => {
    await using rig = await openConsole(gateway, '#/usage');
    const { page } = rig;
    const sizes = () =>
      page.evaluate(
        `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/built/')).map(({ transferSize }) => transferSize)`,
      ) as Promise<number[]>;
    // The code of the chats comes last.
    await page.waitForSelector('#text', { state: 'attached' });
    await page.goto('about:blank');
    await page.goto(`${gateway.address}/#/usage`);
    await page.waitForSelector('.view .card');
    expect((await sizes()).length).toBeGreaterThan(8);
    expect((await sizes()).filter((size) => size > 0)).toEqual([]);
    const [script = ''] =
      /\/built\/[\w-]+\/app\.js/.exec(await (await fetch(gateway.address)).text()) ?? [];
    const zipped = await fetch(`${gateway.address}${script}`);
    expect(zipped.headers.get('content-encoding')).toBe('gzip');
    const plain = await fetch(`${gateway.address}${script}`, {
      headers: { 'accept-encoding': 'identity' },
    });
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(await plain.text()).toBe(await zipped.text());
    expect(plain.headers.get('cache-control')).toContain('immutable');
    expect((await fetch(`${gateway.address}/`)).headers.get('cache-control')).toBe('no-cache');
  });
});
