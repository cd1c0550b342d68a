// Answers that WhatsApp, Lark, a mail server or the web page refuse for good: the person who asked is
// told, or the owner where the person is not reached, and the message stays in the list of dead letters.

import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { withOpenState } from '../../src/kernel/home-state.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  mediaId,
  messageId,
} from '../../src/kernel/message/ids.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import type { LarkChat } from '../support/lark-server/contract.ts';
import { startLarkServer } from '../support/lark-server/server.ts';
import { echo, startLlmServer } from '../support/llm-server.ts';
import { startMailBox } from '../support/mail-box.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';
import { startWhatsAppWorld } from '../support/whatsapp-gateway.ts';

const WAIT_MS = 45_000;
const WAIT = { timeout: WAIT_MS };
const TEST_MS = 120_000;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const done = stack;
  stack = new AsyncDisposableStack();
  await done.disposeAsync();
});

const deadIn = async ({ path }: TestHome) =>
  (await runNanobot(['dead', 'list'], { home: path })).stdout;

type PageEvent = { readonly type: string; readonly text?: string };

/** Every text in a chat of the web page, once one is like this. */
async function pageShows(
  { address, credentials }: GatewayProcess,
  chat: string,
  like: RegExp,
): Promise<readonly string[]> {
  const textOf = ({ data }: ServerEvent) => (data as PageEvent).text ?? '';
  const isDone = (all: readonly ServerEvent[]) => all.some((one) => like.test(textOf(one)));
  const path = `/api/web/chats/${chat}/events?after=0`;
  return (await followEvents(address, path, isDone, credentials)).map(textOf);
}

const configWith = (
  channels: NonNullable<ConfigInput['channels']>,
  apiBase: string,
): ConfigInput => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  providers: { openai: { apiKey: 'sk-refused-answers', apiBase } },
  channels,
  gateway: { port: 0 },
  coalesce: { quietMs: 0, continuationMs: 0 },
});

/** A home with these channels on and a model that repeats the nonce it was asked for. */
async function startHome(channels: NonNullable<ConfigInput['channels']>) {
  const model = stack.use(await startLlmServer({ respond: echo }));
  const home = stack.use(await makeTestHome(configWith(channels, model.openaiBase)));
  return { home, gateway: await home.start() };
}

describe('an answer that WhatsApp refuses for good', () => {
  it(
    'is told to the asker, or to the owner where the chat takes nothing',
    async () => {
      const { server, link, home, phone, ...world } = stack.use(await startWhatsAppWorld());
      await link();
      const anna = await server.contact(phone);
      const refuses = (times: number) =>
        server.fault({
          direction: 'up',
          stanza: 'message',
          times,
          effect: { kind: 'nack', code: 403 },
        });
      refuses(1);
      await anna.writes('please say nonce-once');
      const notice = await anna.sees(({ text }) => /could not be delivered/.test(text), WAIT_MS);
      expect(notice.text).toMatch(/it is forbidden[\s\S]*ask again/);
      expect(anna.seen).toHaveLength(1);

      const ben = await server.contact(phone);
      refuses(100);
      await ben.writes('please say nonce-never');
      const told = await pageShows(world.gateway, 'notices', /cannot be delivered/);
      expect(told.join()).toMatch(
        new RegExp(`whatsapp:\\+?${ben.number}[\\s\\S]*forbidden[\\s\\S]*dead list`),
      );
      expect(ben.seen).toEqual([]);
      server.clearFaults();
      expect(await deadIn(home)).toMatch(/it is forbidden[\s\S]*nonce-once[\s\S]*nonce-never/);
    },
    TEST_MS,
  );
});

describe('an answer that Lark refuses for good', () => {
  it(
    'is told to the asker, or to the owner where the chat takes nothing',
    async () => {
      const lark = stack.use(await startLarkServer());
      const [anna, ben] = [lark.person('Anna'), lark.person('Ben')];
      const { home, gateway } = await startHome({
        lark: {
          enabled: true,
          appId: lark.appId,
          appSecret: lark.appSecret,
          domain: lark.url,
          allowFrom: [anna.unionId, ben.unionId],
        },
      });
      const refuses = (times: number) =>
        lark.fault({
          method: 'POST',
          path: /^im\/v1\/messages(?:\/\w+\/reply)?$/,
          times,
          effect: { kind: 'error', status: 400, code: 230035 },
        });
      const shown = (chat: LarkChat) => lark.seen(chat).map((each) => lark.textOf(each));
      refuses(1);
      lark.say(anna, 'please say nonce-once');
      await expect
        .poll(() => shown(lark.direct(anna)).join(), WAIT)
        .toMatch(/could not be delivered[\s\S]*230035[\s\S]*ask again/);
      expect(shown(lark.direct(anna))).toHaveLength(1);

      refuses(100);
      lark.say(ben, 'please say nonce-never');
      const told = await pageShows(gateway, 'notices', /cannot be delivered/);
      expect(told.join()).toMatch(/lark:[\s\S]*230035[\s\S]*dead list/);
      expect(shown(lark.direct(ben))).toEqual([]);
      expect(await deadIn(home)).toMatch(/230035[\s\S]*nonce-once[\s\S]*nonce-never/);
      expect(lark.violations).toEqual([]);
    },
    TEST_MS,
  );
});

describe('an answer that the mail server refuses for good', () => {
  const SERVER = 'mx.nanobot.test';

  it(
    'is told to the asker, or to the owner where no mail to them is taken',
    async () => {
      const box = stack.use(await startMailBox());
      const { home, gateway } = await startHome({
        email: {
          ...mailboxAt(box),
          allowFrom: ['anna@person.test', 'ben@person.test'],
          authservId: SERVER,
          pollSecs: 5,
          quoteOriginal: false,
        },
      });
      await box.followed;
      const drop = (from: string, nonce: string) =>
        box.drop(
          [
            `Authentication-Results: ${SERVER}; dmarc=pass header.from=person.test`,
            `From: <${from}@person.test>`,
            `To: ${AGENT}`,
            `Subject: From ${from}`,
            `Date: ${new Date().toUTCString()}`,
            `Message-ID: <${nonce}@person.test>`,
            '',
            `please say ${nonce}`,
            '',
          ].join('\r\n'),
        );
      box.refuse(/^nonce-once/m);
      box.refuse(/^To: .*ben@person\.test/m);
      drop('anna', 'nonce-once');
      await expect.poll(() => box.sent, WAIT).toHaveLength(1);
      expect(box.sent[0]).toMatch(/^To: .*anna@person\.test/m);
      expect(box.sent[0]).toMatch(/could not be delivered[\s\S]*content refused[\s\S]*ask\s+again/);

      drop('ben', 'nonce-never');
      const told = await pageShows(gateway, 'notices', /cannot be delivered/);
      expect(told.join()).toMatch(/email:[\s\S]*content refused[\s\S]*dead list/);
      expect(box.sent).toHaveLength(1);
      expect(await deadIn(home)).toMatch(/content refused[\s\S]*nonce-once[\s\S]*nonce-never/);
    },
    TEST_MS,
  );
});

describe('an answer on the page', () => {
  const CHAT = 'travel';
  const chat = { channel: channelName('web'), account: DEFAULT_ACCOUNT, chat: chatId(CHAT) };

  it('whose file is gone when it is sent after a restart is told in its chat', async () => {
    const { home, gateway } = await startHome({});
    await gateway.kill();
    // What a process leaves behind that ends before it sends an answer.
    const content = Buffer.from('a file that was swept');
    const media = mediaId(createHash('sha256').update(content).digest('hex'));
    const file = {
      media,
      name: 'plan.pdf',
      kind: 'document',
      mimeType: 'application/pdf',
    } as const;
    const answer = {
      id: messageId('turn-of-the-page/say/0'),
      chat,
      markdown: 'nonce-once',
      replyTo: messageId('web:default:travel:c1'),
      attachments: [{ ...file, sizeBytes: content.length }],
    };
    await withOpenState(homeOf({ NANOBOT_HOME: home.path }), systemClock, ({ store }) =>
      store.queue(answer),
    );
    const shown = await pageShows(await home.start(), CHAT, /could not be delivered/);
    expect(shown.join()).toMatch(/no longer stored[\s\S]*ask again/);
    expect(shown.join()).not.toContain('nonce-once');
    expect(await deadIn(home)).toMatch(/no longer stored[\s\S]*nonce-once/);
  });
});
