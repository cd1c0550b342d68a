// One person on Telegram and on the web page: the conversation moves with them, with its context and
// the turn under way, over a kill, and nothing is lost or answered twice.

import { afterAll, describe, expect, it } from 'vitest';
import { echo, type LlmReply } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OLGA = { id: 700, first_name: 'Olga' };
const WEB_CHAT = 'desk';

const world = await startTelegramWorld({ respond: echo, channel: { streaming: true } });
const { telegram, model } = world;
afterAll(() => world[Symbol.asyncDispose]());

let asked = 0;

const onTelegram = () => world.texts(OLGA.id);
const hearsOnTelegram = (pattern: RegExp) => world.hears(OLGA.id, pattern);

async function sayOnWeb(text: string) {
  asked += 1;
  const response = await fetch(`${world.gateway.address}/api/web/chats/${WEB_CHAT}/messages`, {
    method: 'POST',
    headers: { ...world.gateway.credentials, 'content-type': 'application/json' },
    body: JSON.stringify({ clientId: `c${asked}`, text }),
  });
  expect(response.status).toBe(202);
}

/** Everything the page has been told, until a text matches. */
async function onWeb(pattern: RegExp): Promise<readonly string[]> {
  const hangUp = AbortSignal.timeout(45_000);
  const address = `${world.gateway.address}/api/web/chats/${WEB_CHAT}/events?after=0`;
  const response = await fetch(address, { headers: world.gateway.credentials, signal: hangUp });
  const texts: string[] = [];
  let rest = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '{}');
      if (data.type === 'said' && data.from === 'agent') texts.push(data.text);
    }
    if (texts.some((text) => pattern.test(text))) break;
  }
  return texts;
}

const countOf = (texts: readonly string[], part: string) =>
  texts.filter((text) => text.includes(part)).length;

describe('a person on two doors', () => {
  it('joins them by a code from the page, and is its owner on Telegram too', async () => {
    await sayOnWeb('/link');
    const code = /\/link ([A-Z0-9]{8})/.exec((await onWeb(/\/link [A-Z0-9]{8}/)).at(-1) ?? '')?.[1];
    telegram.say(OLGA, `/link ${code}`);
    await hearsOnTelegram(/same person/);
    telegram.say(OLGA, '/whoami');
    await hearsOnTelegram(/Role: owner/);
    await onWeb(/telegram.*700/);
  });

  it('has a conversation on each of them', async () => {
    telegram.say(OLGA, 'please say nonce-secret');
    await hearsOnTelegram(/nonce-secret/);
    await sayOnWeb('please say nonce-page');
    await onWeb(/nonce-page/);
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('nonce-secret');
  });

  it('moves the one with its context, and both doors show where it is', async () => {
    telegram.say(OLGA, '/continue web');
    await hearsOnTelegram(/continues on web/);
    await onWeb(/from telegram.* continues here/);
    await sayOnWeb('please say nonce-moved');
    await onWeb(/nonce-moved/);
    expect(JSON.stringify(model.requests.at(-1))).toContain('nonce-secret');
  });

  it('is answered where they write again', async () => {
    telegram.say(OLGA, 'please say nonce-back');
    await hearsOnTelegram(/nonce-back/);
    expect(JSON.stringify(model.requests.at(-1))).toContain('nonce-moved');
  });

  it('gets the answer under way on the new door only, and nothing of it stays on the old', async () => {
    const gate = Promise.withResolvers<void>();
    const slow: LlmReply = { chunks: ['half an answer ', gate.promise, 'nonce-slow'] };
    model.script(slow);
    const before = model.requests.length;
    telegram.say(OLGA, 'a long question');
    await model.received(before + 1);
    await hearsOnTelegram(/half an answer/);
    telegram.say(OLGA, '/continue web');
    await telegram.waitFor(() => countOf(onTelegram(), 'continues on web') === 2);
    gate.resolve();
    expect(countOf(await onWeb(/nonce-slow/), 'nonce-slow')).toBe(1);
    expect(countOf(onTelegram(), 'nonce-slow')).toBe(0);
    await telegram.waitFor(() => countOf(onTelegram(), 'half an answer') === 0);
  });

  it('gets it there once when the gateway is killed in between', async () => {
    const never = new Promise<void>(() => undefined);
    model.script({ chunks: ['nonce-lost'], gate: never });
    const before = model.requests.length;
    telegram.say(OLGA, 'please say nonce-killed');
    await model.received(before + 1);
    telegram.say(OLGA, '/continue web');
    await telegram.waitFor(() => countOf(onTelegram(), 'continues on web') === 3);
    await world.restart();
    await sayOnWeb('please say nonce-after');
    const texts = await onWeb(/nonce-after/);
    expect(countOf(texts, 'nonce-killed')).toBe(1);
    expect(countOf(onTelegram(), 'nonce-killed')).toBe(0);
    const order = texts.map((text) => text.indexOf('nonce-')).filter((at) => at >= 0);
    expect(order.length).toBeGreaterThan(0);
    expect(texts.findIndex((text) => text.includes('nonce-killed'))).toBeLessThanOrEqual(
      texts.findIndex((text) => text.includes('nonce-after')),
    );
  });

  it('gives the page a conversation of its own again by /new', async () => {
    await sayOnWeb('/new');
    await onWeb(/New conversation\./);
    await sayOnWeb('please say nonce-alone');
    await onWeb(/nonce-alone/);
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('nonce-killed');
    telegram.say(OLGA, 'please say nonce-kept');
    await hearsOnTelegram(/nonce-kept/);
    expect(JSON.stringify(model.requests.at(-1))).toContain('nonce-secret');
  });

  it('shares one conversation over all doors where they want it, each answered where it was asked', async () => {
    telegram.say(OLGA, '/me conversations shared');
    await hearsOnTelegram(/share one conversation/);
    await sayOnWeb('please say nonce-shared');
    await onWeb(/nonce-shared/);
    expect(JSON.stringify(model.requests.at(-1))).toContain('nonce-secret');
    expect(countOf(onTelegram(), 'nonce-shared')).toBe(0);
    telegram.say(OLGA, '/me conversations each');
    await hearsOnTelegram(/its own conversation/);
  });

  it('cannot move it to a door that is not theirs', async () => {
    telegram.say(OLGA, '/continue whatsapp');
    await hearsOnTelegram(/Your channels: web/);
    telegram.say(OLGA, '/unlink web');
    await hearsOnTelegram(/would lose the other channels/);
  });
});
