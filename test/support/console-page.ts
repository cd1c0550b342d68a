// A view of the console in Chromium, logged in on a real gateway; what every view is checked for: nothing
// overflows at any size in either theme, and axe finds nothing serious.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { isFullCampaign } from './campaign.ts';
import { chromium, startLoggedIn } from './chromium.ts';
import { freePorts } from './free-ports.ts';
import {
  startTelegramWorld,
  type TelegramWorld,
  type TelegramWorldOptions,
} from './telegram-world.ts';

export const HOSTILE = '<img src=x onerror="window.pwned=1"> \u202Egnp.exe';
export const LONG_WORD = 'x'.repeat(300);
const LIGHT = ['light'] as const;
const DARK = ['dark'] as const;
const THEMES = [...LIGHT, ...DARK] as const;
/** A desktop and a phone in both themes; the short campaign looks at one theme of each. */
export const SCREENS = [
  { viewport: { width: 1440, height: 900 }, themes: isFullCampaign() ? THEMES : LIGHT },
  { viewport: { width: 390, height: 844 }, themes: isFullCampaign() ? THEMES : DARK },
] as const;

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** The elements that are wider than their place, or stand beyond the screen. */
const OVERFLOWING = `[...document.querySelectorAll('body, #console, .view, .view *, #pages *')]
  .filter((one) => one.clientWidth > 0 && one.tagName !== 'INPUT')
  .filter((one) =>
    one.getBoundingClientRect().right > innerWidth + 1 ||
    (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible'))
  .map((one) => one.outerHTML.slice(0, 100))`;

/** Where the gateway listens, and how its owner calls it. */
export type ConsoleHost = {
  readonly address: string;
  readonly credentials: Readonly<Record<string, string>>;
};

export type ApiCall = readonly [
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
];

/** A call of the API by the owner; with a body it is a POST. */
export async function callApi(
  { address, credentials }: ConsoleHost,
  ...[path, body, headers = {}]: ApiCall
) {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${address}${path}`, {
    ...sent,
    headers: { ...credentials, 'content-type': 'application/json', ...headers },
  });
  return { status: response.status, body: await response.json() };
}

export type ConsoleRig = AsyncDisposable & {
  readonly page: Page;
  /** Errors of the page, and what its policy stopped. */
  readonly problems: readonly string[];
};

/** A new browser, logged in, shows the view of `hash`: `#/usage`. */
export async function openConsole(
  host: ConsoleHost,
  hash: string,
  options: BrowserContextOptions = {},
): Promise<ConsoleRig> {
  const { code } = (await callApi(host, '/api/links', {})).body;
  const { session } = (await callApi(host, '/api/login', { code })).body;
  const context = await chromium().newContext({ locale: 'en-GB', ...options });
  await startLoggedIn(context, session);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/.test(message.text())) problems.push(message.text());
  });
  await page.goto(`${host.address}/${hash}`);
  await page.waitForSelector('.view');
  return { page, problems, [Symbol.asyncDispose]: () => context.close() };
}

/** The program with Telegram and a model for all tests of a block; its gateway keeps its port when it starts again. */
export function consoleWorld(options: TelegramWorldOptions) {
  let started: TelegramWorld | undefined;
  const world = () => {
    if (started === undefined) throw new Error('the program starts before the first test');
    return started;
  };
  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    started = await startTelegramWorld({
      ...options,
      config: { ...options.config, gateway: { port } },
    });
  });
  afterAll(() => started?.[Symbol.asyncDispose]());
  return {
    world,
    api: (...call: ApiCall) => callApi(world().gateway, ...call),
    open: (hash: string, context?: BrowserContextOptions) =>
      openConsole(world().gateway, hash, context),
  };
}

/** What the page tries again in a moment it tries at once. */
export const networkIsBack = (page: Page): Promise<unknown> =>
  page.evaluate("dispatchEvent(new Event('online'))");

/** Until the page follows its stream again after a start of the gateway: what is pressed then arrives. */
export async function reconnects(
  page: Page,
  stream: string,
  restart: () => Promise<unknown>,
): Promise<void> {
  const answered = page.waitForResponse((answer) => answer.ok() && answer.url().endsWith(stream));
  await restart();
  await networkIsBack(page);
  await answered;
}

type Screens = AsyncDisposable & {
  /**
   * Shows the view in the page as it stands and checks it in each theme at each size. `prepare` opens what is folded.
   * The pictures `<name>-1440-light.png` are written below `NANOBOT_SCREENSHOTS` where that is set.
   */
  fit(hash: string, name: string, prepare?: (page: Page) => Promise<void>): Promise<void>;
};

/** For several views one after the other. */
export async function openScreens(host: ConsoleHost): Promise<Screens> {
  // Axe is evaluated, which the policy of the page forbids.
  const { page, ...opened } = await openConsole(host, '#/runs', { bypassCSP: true });
  return {
    ...opened,
    async fit(hash, name, prepare = async () => undefined) {
      await page.setViewportSize(SCREENS[0].viewport);
      await page.goto(`${host.address}/${hash}`);
      await page.waitForSelector('.view');
      await prepare(page);
      for (const { viewport, themes } of SCREENS) {
        await page.setViewportSize(viewport);
        for (const colorScheme of themes) {
          await page.emulateMedia({ colorScheme });
          await fits(page, `${name}-${viewport.width}-${colorScheme}`);
        }
      }
      expect(await page.evaluate('window.pwned')).toBeUndefined();
    },
  };
}

/** One view; see `Screens`. */
export async function fitsEachScreen(
  host: ConsoleHost,
  ...view: Parameters<Screens['fit']>
): Promise<void> {
  await using screens = await openScreens(host);
  await screens.fit(...view);
}

/** Checks the page as it stands, and takes its picture. */
export async function fits(page: Page, name: string): Promise<void> {
  const shots = process.env['NANOBOT_SCREENSHOTS'];
  await page.evaluate('new Promise(requestAnimationFrame)');
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
  expect([name, ...((await page.evaluate(OVERFLOWING)) as string[])]).toEqual([name]);
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[];
  };
  const serious = violations.filter(({ impact }) => /serious|critical/.test(impact));
  expect([name, ...serious.map(({ id, nodes }) => [id, nodes[0]?.html])]).toEqual([name]);
}
