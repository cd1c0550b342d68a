// The suite of the web console: how long each view takes until its first data is drawn, in a browser that
// has nothing of it, by its address and from another view, on loopback. The home has conversations and jobs.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/support/chromium.ts';
import { freePorts } from '../test/support/free-ports.ts';
import { percentile } from './load.ts';
import { figure, header, row } from './table.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const CONVERSATIONS = 200;
const JOBS = 20;
const ROUNDS = 5;
const MEDIAN = 0.5;
const KILOBYTE = 1000;
const VIEWS = [
  'sessions',
  'schedules',
  'runs',
  'memory',
  'people',
  'usage',
  'operations',
  'setup',
  'configuration',
] as const;

/** Resolves with the moment at which the view shows more than its frame: of the first frame after it. */
const DRAWN = `new Promise((resolve) => {
  const look = () => {
    const data = document.querySelector('.view :is(.card, .rows li, .empty, .section, .settings)');
    const isLoading = document.querySelector('.view .loading:not([hidden])') !== null;
    if (data === null || isLoading) requestAnimationFrame(look);
    else requestAnimationFrame(() => resolve(performance.now()));
  };
  look();
})`;

export async function consoleViews(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  await fillHome(folder, CONVERSATIONS);
  const { link, stop } = await startGateway(folder);
  stack.defer(stop);
  const browser = await launchChromium();
  stack.defer(() => browser.close());
  const page = await (await browser.newContext()).newPage();
  await page.goto(link);
  await page.waitForSelector('.welcome, .message');
  await addJobs(folder);
  const { origin } = new URL(link);
  const session = String(await page.evaluate(`localStorage.getItem('nanobot.session')`));
  header(
    ...['view', 'first p50 ms', 'slowest', 'requests before it', 'kB'],
    ...['by its address p50 ms', 'slowest', 'from another view p50 ms', 'slowest'],
  );
  for (const view of VIEWS) {
    const [first, opened, changed]: [number[], number[], number[]] = [[], [], []];
    let cost = { requests: 0, bytes: 0 };
    // The first round loads code of the gateway that is loaded on use.
    for (let round = 0; round <= ROUNDS; round += 1) {
      const fresh = await firstOpening(browser, { origin, session, view });
      const times = await loads(page, origin, view);
      if (round === 0) continue;
      first.push(fresh.opened);
      cost = fresh;
      opened.push(times.opened);
      changed.push(times.changed);
    }
    const both = (times: readonly number[]) => [mid(times), figure(Math.max(...times))];
    const sizes = [String(cost.requests), figure(cost.bytes / KILOBYTE)];
    row(view, ...both(first), ...sizes, ...both(opened), ...both(changed));
  }
}

type FirstOpening = { readonly origin: string; readonly session: string; readonly view: string };

/** With an empty cache, logged in. */
async function firstOpening(browser: Browser, { origin, session, view }: FirstOpening) {
  const context = await browser.newContext();
  await context.addInitScript(
    `localStorage.setItem('nanobot.session', ${JSON.stringify(session)})`,
  );
  const page = await context.newPage();
  await page.goto(`${origin}/#/${view}`);
  const opened = (await page.evaluate(DRAWN)) as number;
  const sizes = (await page.evaluate(
    `performance.getEntriesByType('resource').map(({ transferSize }) => transferSize)`,
  )) as number[];
  await context.close();
  return { opened, requests: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

const mid = (times: readonly number[]) => figure(percentile(times, MEDIAN));

async function loads(page: Page, origin: string, view: string) {
  await page.goto('about:blank');
  await page.goto(`${origin}/#/${view}`);
  const opened = (await page.evaluate(DRAWN)) as number;
  await page.goto(`${origin}/#/chat`);
  await page.waitForSelector('#talk:visible');
  const changed = (await page.evaluate(`(async () => {
    const from = performance.now();
    location.hash = '#/${view}';
    await new Promise((resolve) => setTimeout(resolve));
    return (await ${DRAWN}) - from;
  })()`)) as number;
  return { opened, changed };
}

export async function fillHome(folder: string, conversations: number): Promise<void> {
  const [port = 0] = await freePorts(1);
  await writeFile(join(folder, 'config.json'), JSON.stringify({ gateway: { port } }), {
    mode: 0o600,
  });
  await mkdir(join(folder, 'sessions'));
  const at = new Date(Date.now() - 86_400_000).toISOString();
  for (let chat = 1; chat <= conversations; chat += 1) {
    const key = `telegram:${chat}`;
    const head = { _type: 'metadata', session_key: key, created_at: at, updated_at: at };
    const said = { role: 'user', content: `question ${chat}`, timestamp: at, turn_id: `${key}#1` };
    const lines = [{ ...head, metadata: {} }, said].map((line) => JSON.stringify(line));
    const name = `${encodeURIComponent(key)}_${at.slice(0, 10)}.jsonl`;
    await writeFile(join(folder, 'sessions', name), `${lines.join('\n')}\n`);
  }
}

function nanobot(folder: string, ...args: readonly string[]) {
  return spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, NANOBOT_HOME: folder, TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

export async function startGateway(folder: string) {
  const child = nanobot(folder, 'gateway');
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.kill();
    await once(child, 'exit');
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const link = /http:\/\/\S+#login=\S+/.exec(line)?.[0];
    if (link === undefined) continue;
    child.stdout.resume();
    return { link, stop };
  }
  throw new Error('the gateway has ended');
}

async function addJobs(folder: string): Promise<void> {
  for (let job = 0; job < JOBS; job += 1) {
    const child = nanobot(folder, 'cron', 'add', `job ${job}`, '--say', '--every', '2h');
    child.stdout.resume();
    await once(child, 'exit');
  }
}
