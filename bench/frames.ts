// The suite of long lists: 10,000 conversations and a log of 100,000 lines are opened and scrolled through
// in Chromium, while it records what its main thread does. A task of more than 50 ms holds up a frame.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../test/support/chromium.ts';
import { fillHome, startGateway } from './console.ts';
import { percentile } from './load.ts';
import { figure, header, row } from './table.ts';

const CONVERSATIONS = 10_000;
const LINES = 100_000;
const FRAME_MS = 50;
const MICROS = 1000;
const CATEGORIES = ['toplevel', 'disabled-by-default-devtools.timeline', 'devtools.timeline'];
const MOST = 0.99;

/** One task of a thread, in microseconds: as long as it took, and the processor time in it. */
type Task = { readonly name: string; readonly pid: number; readonly tid: number } & {
  readonly dur?: number;
  readonly tdur?: number;
};

/** To the other end, a step in each frame. */
const scroll = (selector: string, steps: number) => `(async () => {
  const place = document.querySelector('${selector}');
  const from = place.scrollTop;
  const to = from > 0 ? 0 : place.scrollHeight;
  for (let step = 1; step <= ${steps}; step += 1) {
    place.scrollTop = from + ((to - from) * step) / ${steps};
    await new Promise(requestAnimationFrame);
  }
})()`;

export async function frames(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  await fillHome(folder, CONVERSATIONS);
  await writeLog(folder);
  const { link, stop } = await startGateway(folder);
  stack.defer(stop);
  const browser = await launchChromium();
  stack.defer(() => browser.close());
  const page = await (await browser.newContext()).newPage();
  await page.goto(link);
  await page.waitForSelector('.welcome, .message');
  const open = async (view: string, shown: string) => {
    await page.evaluate(`location.hash = '#/${view}'`);
    await page.waitForSelector(shown);
  };
  const filter = async () => {
    await page.fill('.log-filter input', '"line":4321,');
    await page.waitForSelector(`.log >> text=/^1 of/`);
  };
  header(
    ...['what', 'tasks', 'p99 ms', 'longest ms', 'above 50 ms'],
    ...['longest in processor ms', 'above 50 ms'],
  );
  const measure = async (what: string, work: () => Promise<unknown>) =>
    report(what, await tasksOf(browser, page, work));
  await measure('open the inbox', () => open('sessions', '.window [aria-posinset] a'));
  await measure('scroll the inbox', () => page.evaluate(scroll('#console', 200)));
  await measure('open the log', () => open('operations/log', `.log >> text=/100,0\\d\\d lines/`));
  await measure('scroll the log', () => page.evaluate(scroll('.line-window', 200)));
  await measure('filter the log', filter);
}

/** Those of the thread that runs the page. */
async function tasksOf(browser: Browser, page: Page, work: () => Promise<unknown>) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await work();
  const { traceEvents }: { readonly traceEvents: readonly Task[] } = JSON.parse(
    (await browser.stopTracing()).toString(),
  );
  const drawn = traceEvents.find(({ name }) => name === 'FireAnimationFrame' || name === 'Layout');
  return traceEvents.filter(
    ({ name, pid, tid }) => /RunTask$/.test(name) && pid === drawn?.pid && tid === drawn.tid,
  );
}

function report(what: string, tasks: readonly Task[]): void {
  const took = tasks.map(({ dur = 0 }) => dur / MICROS);
  const worked = tasks.map(({ tdur = 0 }) => tdur / MICROS);
  const above = (times: readonly number[]) => times.filter((time) => time > FRAME_MS).length;
  row(
    ...[what, tasks.length, figure(percentile(took, MOST)), figure(Math.max(0, ...took))],
    ...[above(took), figure(Math.max(0, ...worked)), above(worked)],
  );
}

async function writeLog(folder: string): Promise<void> {
  const time = new Date(Date.now() - 86_400_000).toISOString();
  const about = 'x'.repeat(90);
  const lines = Array.from({ length: LINES }, (_, line) =>
    JSON.stringify({ level: 'info', time, line, about, msg: `line ${line}` }),
  );
  await mkdir(join(folder, 'logs'));
  await writeFile(join(folder, 'logs', `nanobot.${time.slice(0, 10)}.log`), lines.join('\n'));
}
