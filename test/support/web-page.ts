// The web page in a browser: over a server whose answers the test gives, behind a proxy that can cut
// the line, beside a foreign site that notes every request it gets.

import { createServer } from 'node:http';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect, vi } from 'vitest';
import type { ChannelControl } from '../../src/features/setup/link-routes.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { answer, picture, sendContext } from '../channels/local/local-rig.ts';
import { type HttpRig, startHttp } from '../http/http-rig.ts';
import { chromium, startLoggedIn } from './chromium.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { closed, portOf } from './listening.ts';

export type PageRig = AsyncDisposable & {
  readonly page: Page;
  readonly http: HttpRig;
  readonly proxy: FaultProxy;
  /** Where the page is served, through the proxy. */
  readonly address: string;
  /** Errors the page threw, and what its policy stopped. */
  readonly problems: readonly string[];
  /** Types into the message field and sends. */
  say(text: string): Promise<void>;
  /** The agent's n-th answer of a turn. */
  answer(turn: string, markdown: string, ordinal?: number): Promise<void>;
  show(...args: Parameters<typeof picture> extends [string, ...infer Rest] ? Rest : never): void;
  /** The texts of all messages in order. */
  messages(): Promise<readonly string[]>;
  /** Resolves when the page shows exactly these messages. */
  showsMessages(...texts: readonly string[]): Promise<void>;
};

/** Retries until it holds; the page answers in its own time. */
export function eventually(check: () => Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: WAIT_MS, interval: 30 });
}

export type PageOptions = {
  readonly chat?: string;
  /** Named by tests that log in themselves; else the page is logged in. */
  readonly token?: string;
  readonly model?: string;
  readonly context?: BrowserContextOptions;
  /** The channels of the panel; none unless given. */
  readonly control?: ChannelControl;
  /** Said before the page is opened. */
  readonly prepare?: (http: HttpRig) => Promise<void>;
};

const WAIT_MS = 45_000;
const MESSAGE_BODIES = '.said .message .body';

export async function openPage(options: PageOptions = {}): Promise<PageRig> {
  const { chat = 'a', token, model = 'some/model' } = options;
  const http = await startHttp({
    ...(token === undefined ? {} : { token }),
    clock: systemClock,
    status: () => ({ model, channels: [], storeWaitMs: 0 }),
    ...(options.control === undefined ? {} : { control: options.control }),
  });
  await options.prepare?.(http);
  const proxy = await startFaultProxy({ port: http.port });
  const context = await chromium().newContext(options.context);
  const { access } = http;
  if (token === undefined)
    await startLoggedIn(context, await access.redeem((await access.makeCode()).code));
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/.test(message.text())) problems.push(message.text());
  });
  const address = `http://127.0.0.1:${proxy.port}`;
  await page.goto(`${address}/#${chat}`);
  // The code of the chats is loaded after the page.
  await page.waitForSelector('#text', { state: 'attached' });
  const messages = async () => {
    const texts = await page.locator(MESSAGE_BODIES).allInnerTexts();
    return texts.map((text) => text.trim());
  };
  return {
    page,
    http,
    proxy,
    address,
    problems,
    async say(text) {
      await page.fill('#text', text);
      await page.press('#text', 'Enter');
    },
    async answer(turn, markdown, ordinal = 0) {
      await http.door.send(answer(chat, `${turn}/${ordinal}`, markdown), sendContext());
    },
    show: (...args) => http.door.liveView?.show(picture(chat, ...args)),
    messages,
    showsMessages: (...texts) => eventually(async () => expect(await messages()).toEqual(texts)),
    async [Symbol.asyncDispose]() {
      await context.close();
      await proxy[Symbol.asyncDispose]();
      await http.close();
    },
  };
}

export type ForeignSite = AsyncDisposable & {
  readonly address: string;
  /** Paths that were asked for. */
  readonly requests: readonly string[];
};

/** Serves one page to whoever asks and notes every request. */
export async function startForeignSite(html = ''): Promise<ForeignSite> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  const port = await portOf(server);
  return {
    address: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  };
}
