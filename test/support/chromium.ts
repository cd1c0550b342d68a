// A headless Chromium for the system tests of the web page.

import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium-headless-shell';
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** So long a page may take for one step: longer than the 30 s of Playwright, which a busy machine with three browsers reaches. */
const STEP_MS = 120_000;

/** Why there is none, or undefined where there is one. */
export function chromiumAbsent(): string | undefined {
  return existsSync(EXECUTABLE) ? undefined : `Chromium is not installed at ${EXECUTABLE}`;
}

/** `more`: arguments of the program. */
export async function launchChromium(...more: readonly string[]): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: EXECUTABLE,
    args: [...ARGUMENTS, ...more],
  });
  browser.on('context', (context) => context.setDefaultTimeout(STEP_MS));
  return browser;
}
