// Limits of mail between a scripted mailbox, the whole program and a simulated model: a proven person
// does not meet them, what is held was not asked of the model yet, and two machines stop for good.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import { callApi } from '../support/console-page.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { type MailBox, startMailBox } from '../support/mail-box.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';
import { hasNone } from '../support/queue-states.ts';
import { laterBy } from '../support/shifted-clock.ts';

const ANNA = 'anna@person.test';
const SERVER = 'mx.nanobot.test';
const WAIT = { timeout: 45_000, interval: 50 };
const TEST_MS = 120_000;

type MailLimits = NonNullable<NonNullable<NonNullable<ConfigInput['channels']>['email']>['limits']>;
type Letter = { readonly id: string; readonly text: string; readonly inReplyTo?: string };

let box: MailBox;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;
const opened: AsyncDisposable[] = [];

const configWith = (limits: MailLimits): ConfigInput => ({
  gateway: { port: 0 },
  // One turn at a time: mails of no thread are chats of their own, which would be asked side by side.
  agents: { defaults: { model: 'openai/sim-1', maxConcurrentChats: 1 } },
  coalesce: { quietMs: 0, continuationMs: 0 },
  providers: { openai: { apiKey: 'sk-mail-limits', apiBase: model.openaiBase } },
  channels: {
    email: {
      ...mailboxAt(box),
      allowFrom: [ANNA],
      authservId: SERVER,
      pollSecs: 5,
      quoteOriginal: false,
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
    },
  },
});

/** The server that took it in says that it is Anna's. */
function drop({ id, text, inReplyTo }: Letter): void {
  const lines = [
    `Authentication-Results: ${SERVER}; dmarc=pass header.from=person.test`,
    `From: Anna <${ANNA}>`,
    `To: ${AGENT}`,
    `Subject: Letter ${id}`,
    `Date: ${new Date().toUTCString()}`,
    `Message-ID: <${id}@person.test>`,
    ...(inReplyTo === undefined ? [] : [`In-Reply-To: ${inReplyTo}`]),
  ];
  box.drop([...lines, '', text, ''].join('\r\n'));
}

const noncesOf = (texts: readonly string[]) =>
  texts.flatMap((text) => /^(?:please say )?(nonce-\w+)/m.exec(text)?.[1] ?? []);
const answers = () => noncesOf(box.sent);
const asked = () => noncesOf(model.requests.map(({ lastUserText }) => lastUserText));

/** What the owner was told, on the page. */
async function told(like: RegExp): Promise<readonly string[]> {
  const textOf = ({ data }: ServerEvent) => (data as { readonly text?: string }).text ?? '';
  const isDone = (all: readonly ServerEvent[]) => all.some((one) => like.test(textOf(one)));
  const { address, credentials } = gateway;
  const path = '/api/web/chats/notices/events?after=0';
  return (await followEvents(address, path, isDone, credentials)).map(textOf).filter(Boolean);
}

const status = async () => (await runNanobot(['channels', 'status'], { home: home.path })).stdout;

async function start(limits: MailLimits): Promise<void> {
  home = await makeTestHome(configWith(limits));
  opened.push(home);
  gateway = await home.start();
  await expect.poll(status, WAIT).toMatch(/^email +on as/m);
}

beforeEach(async () => {
  box = await startMailBox();
  model = await startLlmServer({ respond: echo });
  opened.push(box, model);
});
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

describe('a proven person', () => {
  it(
    'who writes a dozen mails waits for no answer, and none is the model’s while an owner has taken over',
    async () => {
      await start({ loopMails: 0 });
      for (const letter of 'abcd') drop({ id: letter, text: `please say nonce-${letter}` });
      await expect.poll(answers, WAIT).toHaveLength(4);
      for (const letter of 'efghijkl') {
        drop({ id: letter, text: `please say nonce-${letter}`, inReplyTo: '<a@person.test>' });
        await expect.poll(answers, WAIT).toContain(`nonce-${letter}`);
      }
      expect(answers()).toHaveLength(12);
      const { sessions } = (await callApi(gateway, '/api/v1/sessions')).body;
      const path = `/api/v1/sessions/${encodeURIComponent(sessions[0].key)}`;
      const post = async (what: string, body: object = {}) =>
        (await callApi(gateway, `${path}/${what}`, body)).status;
      const recorded = async () => (await callApi(gateway, `${path}/export`)).body.text;
      expect(await post('take-over')).toBe(200);
      drop({ id: 'm', text: 'please say nonce-m', inReplyTo: '<a@person.test>' });
      await expect.poll(recorded, WAIT).toContain('nonce-m');
      expect(await post('answers', { id: 'own', text: 'nonce-own' })).toBe(200);
      await expect.poll(answers, WAIT).toContain('nonce-own');
      expect(box.sent.at(-1)).toMatch(/^In-Reply-To:\s+<m@person\.test>/im);
      await post('hand-back');
      drop({ id: 'n', text: 'please say nonce-n', inReplyTo: '<a@person.test>' });
      await expect.poll(() => box.sent.length, WAIT).toBe(14);
      expect(model.requests).toHaveLength(13);
      const seen = JSON.stringify(model.requests.at(-1)?.body);
      for (const nonce of ['nonce-m', 'nonce-own', 'nonce-n']) expect(seen).toContain(nonce);
    },
    TEST_MS,
  );

  it(
    'above a limit is held before the model is asked, the owner told why, and answered in order',
    async () => {
      await start({ perHour: 3 });
      for (const letter of 'abcdefg') {
        drop({ id: letter, text: `please say nonce-${letter}` });
        await expect.poll(asked, WAIT).toHaveLength(Math.min(3, 'abcdefg'.indexOf(letter) + 1));
      }
      await expect.poll(status, WAIT).toMatch(/4 mails wait: 3 answers an hour/);
      expect(asked()).toEqual(['nonce-a', 'nonce-b', 'nonce-c']);
      const notices = await told(/anna@person\.test/);
      expect(notices.at(-1)).toMatch(
        /3 answers an hour to one person.*channels\.email\.limits\.perHour/s,
      );
      await hasNone(gateway, 'running', 'outbound');
      await gateway.kill();
      gateway = await home.start(laterBy(0));
      await expect.poll(status, WAIT).toMatch(/4 mails wait: 3 answers an hour/);
      await home.writeConfig(configWith({ perHour: 60 }));
      await gateway.skipUntil(() => answers().length === 7);
      expect(asked()).toEqual([...'abcdefg'].map((letter) => `nonce-${letter}`));
      expect((await told(/anna/)).filter((text) => text.includes('anna'))).toHaveLength(1);
      await expect.poll(status, WAIT).not.toMatch(/wait/);
    },
    TEST_MS,
  );
});

describe('two machines that answer each other', () => {
  it(
    'stop for good after five answers, and both sides hear of it once',
    async () => {
      await start({});
      drop({ id: 'first', text: 'please say nonce-0' });
      for (let round = 1; round <= 7; round += 1) {
        await expect.poll(() => box.sent.length, WAIT).toBeGreaterThanOrEqual(Math.min(round, 6));
        const [, inReplyTo = ''] = /^Message-ID:\s+(<[^>]+>)/im.exec(box.sent.at(-1) ?? '') ?? [];
        drop({ id: `r${round}`, text: `please say nonce-${round}`, inReplyTo });
      }
      const trace = async () => (await runNanobot(['trace', 'last'], { home: home.path })).stdout;
      await expect.poll(trace, WAIT).toMatch(/two machines answering each other/);
      expect(asked()).toEqual([0, 1, 2, 3, 4].map((n) => `nonce-${n}`));
      expect(box.sent).toHaveLength(6);
      expect(box.sent.at(-1)).toMatch(/5 mails in a row[\s\S]*new mail/);
      expect((await told(/in a row/)).filter((text) => text.includes('in a row'))).toHaveLength(1);
      drop({ id: 'person', text: 'please say nonce-person' });
      await expect.poll(answers, WAIT).toContain('nonce-person');
    },
    TEST_MS,
  );
});
