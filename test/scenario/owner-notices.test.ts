// What the owner is told and where: on the account that a notice is about, on the channel they chose,
// and never inside a conversation of the web page. The whole program, seen from Telegram and the page.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const EVE = { id: 701, first_name: 'Eve' };
const WAIT = { timeout: 30_000 };
const DORA = { id: 702, first_name: 'Dora' };

const FRITZ = { id: 703, first_name: 'Fritz' };
const GERD = { id: 704, first_name: 'Gerd' };

const world = await startTelegramWorld({
  respond: echo,
  pair: { [OWNER]: 'owner', [FRITZ.id]: 'trusted', [GERD.id]: 'trusted' },
});
const { telegram } = world;
beforeAll(() => world.asks(OWNER, '/whoami', /Role: owner/));
afterAll(() => world[Symbol.asyncDispose]());

type PageEvent = { readonly type: string; readonly text?: string };

/** Every text in a chat of the web page, once one is like this. */
async function pageShows(chat: string, like: RegExp, at = world): Promise<readonly string[]> {
  const { address, credentials } = at.gateway;
  const textOf = ({ data }: ServerEvent) => (data as PageEvent).text ?? '';
  const path = `/api/web/chats/${chat}/events?after=0`;
  const isDone = (all: readonly ServerEvent[]) => all.some((one) => like.test(textOf(one)));
  return (await followEvents(address, path, isDone, credentials)).map(textOf);
}

let written = 0;
async function writesOnPage(chat: string, text: string): Promise<void> {
  written += 1;
  const { address, credentials } = world.gateway;
  const sent = await fetch(`${address}/api/web/chats/${chat}/messages`, {
    method: 'POST',
    headers: { ...credentials, 'content-type': 'application/json' },
    body: JSON.stringify({ clientId: `c${written}`, text }),
  });
  expect(sent.status).toBe(202);
}

const DOWN = { kind: 'error', code: 502, description: 'Bad Gateway' } as const;
const FINAL = { kind: 'error', code: 400, description: 'Bad Request: content refused' } as const;

/** Telegram refuses whatever holds these words, and everything in these chats. */
const refusing = (words: string, chats: readonly number[] = [], at = world) =>
  at.telegram.fail({
    fault: FINAL,
    times: 1000,
    when: ({ payload }) =>
      chats.includes(Number(payload['chat_id'])) || String(payload['text']).includes(words),
  });

const aboutLoss = (chat: number) => world.texts(chat).filter((text) => /delivered/.test(text));

describe('an answer that the platform refuses for good', () => {
  it('is told to the asker in one notice, however many are refused', async () => {
    using _refused = refusing('nonce-bad');
    telegram.say(FRITZ, 'please say nonce-badone');
    const notice = await world.hears(FRITZ.id, /could not be delivered/);
    expect(notice.text).toMatch(/content refused.*ask again/s);
    telegram.say(FRITZ, 'please say nonce-badtwo');
    const dead = () => world.nanobot('dead', 'list');
    await expect.poll(dead, WAIT).toMatch(/nonce-badone[\s\S]*nonce-badtwo/);
    expect(await dead()).toMatch(/^ {2}Fritz \(telegram:703\): .*nonce-badone/m);
    await world.asks(FRITZ, 'please say nonce-good', /nonce-good/);
    expect(aboutLoss(FRITZ.id)).toHaveLength(1);
    expect(aboutLoss(OWNER)).toEqual([]);
  });

  it('is told to the owner, once, where the asker is not reached', async () => {
    using _refused = refusing('nonce-none', [GERD.id]);
    telegram.say(GERD, 'please say nonce-gerdone');
    const notice = await world.hears(OWNER, /cannot be delivered/);
    expect(notice.text).toMatch(/telegram:704[\s\S]*content refused[\s\S]*dead list/);
    telegram.say(GERD, 'please say nonce-gerdtwo');
    await expect.poll(() => world.nanobot('dead', 'list'), WAIT).toContain('nonce-gerdtwo');
    await world.asks(OWNER, 'please say nonce-owner', /nonce-owner/);
    expect(aboutLoss(OWNER)).toHaveLength(1);
  });

  it('reaches the owner on the page where their own chat refuses everything', async () => {
    await using alone = await startTelegramWorld({ respond: echo, pair: { [OWNER]: 'owner' } });
    await alone.asks(OWNER, '/whoami', /Role: owner/);
    using _refused = refusing('nonce-none', [OWNER], alone);
    alone.telegram.say(OWNER, 'please say nonce-own');
    const shown = await pageShows('notices', /cannot be delivered/, alone);
    expect(shown.filter((text) => text.includes('telegram:700'))).toHaveLength(1);
  });
});

describe('a message of somebody who is not let in', () => {
  it('is told to the owner on that channel, although they used the page last', async () => {
    await writesOnPage('travel', 'please say nonce-page');
    await pageShows('travel', /^nonce-page/);
    telegram.say(EVE, 'please say nonce-eve');
    expect((await world.hears(OWNER, /nonce-eve/)).text).toContain('701');
    await writesOnPage('travel', 'please say nonce-later');
    const shown = await pageShows('travel', /^nonce-later/);
    expect(shown.join('\n')).not.toContain('nonce-eve');
  });

  it('is told on the page outside conversations where the owner chose the page', async () => {
    await world.configure({ notices: { channel: 'web' } });
    await expect.poll(world.gateway.output, WAIT).toMatch(/configuration is in force/);
    const heard = world.texts(OWNER).length;
    telegram.say(DORA, 'please say nonce-dora');
    expect((await pageShows('notices', /nonce-dora/)).join('\n')).toContain('702');
    expect(world.texts(OWNER)).toHaveLength(heard);
  });
});

describe('a wrong edit of the configuration', () => {
  const wrong = { gateway: { port: 'eighty' } } as unknown as ConfigInput;
  const writeWrong = () => world.configure(wrong);
  const aboutConfig = () => world.texts(OWNER).filter((text) => text.includes('config.json'));
  const status = () => world.nanobot('status');

  it('is told to the owner once, and shown until the file is right again', async () => {
    await world.configure({});
    const applied = () => world.gateway.output().match(/configuration is in force/g)?.length;
    await expect.poll(applied, WAIT).toBe(2);
    await world.asks(OWNER, '/status', /Model(?![\s\S]*config\.json)/);
    await writeWrong();
    const notice = await world.hears(OWNER, /config\.json/);
    expect(notice.text).toMatch(/previous configuration stays in use[\s\S]*gateway\.port/);
    await writeWrong();
    expect(await world.asks(OWNER, '/status', /Conversation/)).toMatch(
      /config\.json.*gateway\.port/,
    );
    expect(await status()).toMatch(/the previous configuration stays in use[\s\S]*gateway\.port/);
    await world.asks(OWNER, 'please say nonce-still', /nonce-still/);
    await world.configure({});
    await expect.poll(status, WAIT).not.toContain('cannot be used');
    const isShown = async () =>
      (await world.asks(OWNER, '/status', /Conversation/)).includes('config.json');
    await expect.poll(isShown, WAIT).toBe(false);
    expect(aboutConfig().filter((text) => !text.includes('Conversation'))).toHaveLength(1);
  });
});

describe('a notice about no channel', () => {
  it('waits for the channel of the owner where that is just connecting again', async () => {
    await world.asks(FRITZ, '/cron add say in 1h: nonce-tea', /^Created/);
    const id = /j[0-9a-f]{8}/.exec(await world.nanobot('cron', 'list'))?.[0] ?? '';
    await world.nanobot('people', 'forget', '703');
    using _down = telegram.fail({ method: 'getUpdates', fault: DOWN, times: 1000 });
    await world.asks(OWNER, 'please say nonce-down', /nonce-down/);
    await expect.poll(() => world.nanobot('status'), WAIT).toMatch(/telegram +retrying/);
    await world.nanobot('cron', 'run', id);
    await world.hears(OWNER, /nonce-tea.* was disabled: Fritz/);
  });
});
