// UnknownSenders between a simulated platform, the whole program and a simulated model: what they see, what
// the owner sees, and what a decision does, on whichever door it is made.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';
import { startWhatsAppWorld, type WhatsAppWorld } from '../support/whatsapp-gateway.ts';

const ROOT = join(import.meta.dirname, '../..');
const OWNER = 700;
const EVE = { id: 701, first_name: 'Eve' };
const ANSWER_TIMEOUT_MS = 45_000;

function nanobot(home: string, ...args: readonly string[]) {
  const result = spawnSync(process.execPath, ['src/main.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, NANOBOT_HOME: home, TZ: 'UTC' },
    encoding: 'utf8',
  });
  return { code: result.status, all: result.stdout + result.stderr };
}

const door = await startTelegramWorld({ respond: echo, pair: { [OWNER]: 'owner' } });
const { telegram, model, home, texts: heardBy } = door;
afterAll(() => door[Symbol.asyncDispose]());

const hears = async (chat: number, like: RegExp) => (await door.hears(chat, like)).text;

describe('a stranger on Telegram', () => {
  beforeAll(() => door.asks(OWNER, '/whoami', /Role: owner/));

  it('sees nothing and costs nothing, while the owner is asked where they wrote last', async () => {
    telegram.say(EVE, 'please say nonce-held');
    expect(await hears(OWNER, /nonce-held/)).toMatch(/^New contact on Telegram: Eve \(701\)/);
    expect(heardBy(EVE.id)).toEqual([]);
    expect(model.requests).toEqual([]);
  });

  it('is answered this once by a decision made while the gateway is down', async () => {
    await door.gateway.kill();
    const decided = nanobot(home.path, 'pair', 'approve', 'telegram', '701', '--once');
    expect(decided.all).toContain('1 message');
    await door.start();
    expect(await hears(EVE.id, /nonce-held/)).toBe('nonce-held');
    await hears(OWNER, /nonce-held[\s\S]*Decided elsewhere: nothing is left to do here/);
    const closed = telegram.chat(OWNER).messages.find(({ text }) => text.includes('elsewhere'));
    expect(closed?.buttons).toBeUndefined();
    telegram.say(EVE, 'please say nonce-again');
    await hears(OWNER, /nonce-again/);
    expect(heardBy(EVE.id)).toEqual(['nonce-held']);
  });

  it('is listed to whoever sits at the machine, and let in by the owner in the chat', async () => {
    expect(nanobot(home.path, 'agent', '-m', '/strangers').all).toContain('701');
    telegram.say(OWNER, '/allow telegram 701');
    expect(await hears(EVE.id, /nonce-again/)).toBe('nonce-again');
    await hears(OWNER, /nonce-again[\s\S]*Decided elsewhere: they are let in/);
    telegram.say(EVE, 'and nonce-known');
    await hears(EVE.id, /nonce-known/);
    telegram.say(EVE, '/whoami');
    await hears(EVE.id, /Role: trusted/);
    telegram.say(EVE, '/block telegram 700');
    await hears(EVE.id, /Only my owner/);
  });

  it('is refused silently once blocked', async () => {
    telegram.say(OWNER, '/block telegram 701');
    await hears(OWNER, /is blocked/);
    const asked = model.requests.length;
    const heard = heardBy(EVE.id).length;
    telegram.say(EVE, 'please say nonce-blocked');
    await telegram.waitFor(() => telegram.unconfirmed.length === 0);
    telegram.say(OWNER, 'please say nonce-after');
    await hears(OWNER, /nonce-after/);
    expect(heardBy(EVE.id)).toHaveLength(heard);
    expect(model.requests).toHaveLength(asked + 1);
    expect(await home.logs()).not.toContain('nonce-blocked');
  });
});

describe('a stranger on WhatsApp', () => {
  let world: WhatsAppWorld;

  beforeAll(async () => {
    world = await startWhatsAppWorld({ allowFrom: [] });
    await world.link();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  it('gets no byte until allowed by number, and their words are answered then', async () => {
    const anna = await world.server.contact(world.phone, { name: 'Anna' });
    await anna.writes('please say nonce-anna', { addressing: { by: 'lid', withAlt: true } });
    const pending = () => nanobot(world.home.path, 'pair', 'list').all;
    await expect.poll(pending, { timeout: 45_000, interval: 200 }).toContain('nonce-anna');
    expect(anna.seen).toEqual([]);
    expect(anna.typing).toEqual([]);
    expect(world.model.requests).toEqual([]);
    const allowed = nanobot(world.home.path, 'pair', 'approve', 'whatsapp', `+${anna.number}`);
    expect(allowed.all).toContain('1 message');
    const answer = await anna.sees(({ text }) => text === 'nonce-anna', ANSWER_TIMEOUT_MS);
    expect(answer.text).toBe('nonce-anna');
    await anna.writes('please say nonce-more', { addressing: { by: 'number', withAlt: true } });
    await anna.sees(({ text }) => text === 'nonce-more', ANSWER_TIMEOUT_MS);
  });
});
