// A headless Chromium for the system tests of the web page.

import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium as engine } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';

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
  // A microphone that hears beeps.
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
];

/** So long a page may take for one step: longer than the 30 s of Playwright, which a busy machine with three browsers reaches. */
const STEP_MS = 120_000;

export async function launchChromium(): Promise<Browser> {
  const launched = await engine.launch({ executablePath: EXECUTABLE, args: ARGUMENTS });
  launched.on('context', (context) => context.setDefaultTimeout(STEP_MS));
  return launched;
}

let browser: Browser | undefined;

/** The browser of the tests in `describeInChromium`. */
export function chromium(): Browser {
  if (browser === undefined) throw new Error('there is a browser in describeInChromium only');
  return browser;
}

/** Sooner than `storageState`, for which Playwright opens a page of its own. */
export const startLoggedIn = (context: BrowserContext, session: unknown) =>
  context.addInitScript(
    // A frame without an origin has no storage.
    `if (self.origin !== 'null') localStorage.setItem('nanobot.session', ${JSON.stringify(session)})`,
  );

/** Tests that share a browser; skipped by name where there is none. */
export function describeInChromium(about: string, tests: () => void): void {
  const isAbsent = !existsSync(EXECUTABLE);
  if (isAbsent) console.log(`skipped: ${about} (Chromium is not installed at ${EXECUTABLE})`);
  describe.skipIf(isAbsent)(about, () => {
    tests();

    beforeAll(async () => {
      browser = await launchChromium();
    });

    afterAll(() => browser?.close());
  });
}
