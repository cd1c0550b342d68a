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

/** Why there is none, or undefined where there is one. */
export function chromiumAbsent(): string | undefined {
  return existsSync(EXECUTABLE) ? undefined : `Chromium is not installed at ${EXECUTABLE}`;
}

/** `more`: arguments of the program. */
export function launchChromium(...more: readonly string[]): Promise<Browser> {
  return chromium.launch({ executablePath: EXECUTABLE, args: [...ARGUMENTS, ...more] });
}
