// The whole program where WhatsApp, the owner or a stranger makes trouble.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { withOpenState } from '../../src/kernel/home-state.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { campaign } from '../support/campaign.ts';
import { startWhatsAppWorld, type WhatsAppWorld } from '../support/whatsapp-gateway.ts';
import type { Contact } from '../support/whatsapp-server/contract.ts';

const WAIT_MS = 45_000;
const OWNER = 700;
const JUNK = campaign({ short: 500, full: 5000 });
const STARTS_WHILE_OFFLINE = campaign({ short: 1, full: 3 });
const MAX_GROWTH_MB = 200;

const worlds: WhatsAppWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]();
});

async function linkedWorld(...given: Parameters<typeof startWhatsAppWorld>) {
  const world = await startWhatsAppWorld(...given);
  worlds.push(world);
  await world.link();
  return world;
}

const says = (nonce: string) => (message: { readonly text: string }) =>
  message.text.includes(nonce);

async function ask(contact: Contact, nonce: string) {
  await contact.writes(`please say ${nonce}`);
  return contact.sees(says(nonce), WAIT_MS);
}

describe('a link that ends', () => {
  it.each([
    ['unlinked on the phone', 'logged this device out', 'login'],
    ['taken over by another program', 'took over', 'restart'],
  ] as const)(
    '%s is told to the owner on Telegram, shown, and taken up by one command',
    async (_name, words, command) => {
      await using telegram = await startBotApi();
      const world = await linkedWorld({}, telegramConfig(telegram));
      await becomeOwner(world, telegram);
      const anna = await world.server.contact(world.phone);
      await ask(anna, 'nonce-before');

      if (command === 'login') await world.phone.unlink();
      else await world.phone.end({ kind: 'conflict' });
      const notice = await telegram.nextMessage(OWNER, WAIT_MS);
      expect(notice.text).toContain(words);
      expect(notice.text).toContain(`nanobot channels ${command} whatsapp`);
      const status = async () =>
        (await runNanobot(['channels', 'status'], { home: world.home.path })).stdout;
      expect(await status()).toMatch(new RegExp(`^whatsapp +stopped: .*${words}`, 'm'));
      expect(await readiness(world)).toBe(503);
      const { logins } = world.phone.counts;
      telegram.say(OWNER, 'please say nonce-meanwhile');
      expect((await telegram.nextMessage(OWNER, WAIT_MS)).text).toContain('nonce-meanwhile');
      expect(world.phone.counts.logins).toBe(logins);

      if (command === 'login') await world.link();
      else await runNanobot(['channels', 'restart', 'whatsapp'], { home: world.home.path });
      await ask(anna, 'nonce-after');
      expect(await readiness(world)).toBe(200);
      expect(telegram.violations).toEqual([]);
    },
  );
});

function telegramConfig({ token, apiRoot }: BotApi) {
  return { telegram: { enabled: true, token, apiRoot, allowFrom: [] } };
}

async function becomeOwner(world: WhatsAppWorld, telegram: BotApi): Promise<void> {
  const home = homeOf({ NANOBOT_HOME: world.home.path });
  const { code } = await withOpenState(home, systemClock, ({ pairing }) =>
    pairing.issueOwnerCode('telegram'),
  );
  telegram.say(OWNER, `/start ${code}`);
  expect((await telegram.nextMessage(OWNER, WAIT_MS)).text).toContain('paired');
}

async function readiness({ gateway }: WhatsAppWorld): Promise<number> {
  const { credentials: headers } = gateway;
  return (await fetch(`${gateway.address}/readyz`, { headers })).status;
}

describe('the log', () => {
  it('shows nobody’s phone number, and what it shows of a message finds it again', async () => {
    const world = await linkedWorld();
    const home = world.home.path;
    const anna = await world.server.contact(world.phone);
    await ask(anna, 'nonce-logged');
    const effect = { kind: 'nack', code: 404 } as const;
    world.server.fault({ direction: 'up', stanza: 'message', effect });
    await anna.writes('please say nonce-refused');
    const dead = async () => (await runNanobot(['dead', 'list'], { home })).stdout;
    await expect.poll(dead, { timeout: WAIT_MS }).toContain(anna.number);
    await world.gateway.stop();
    const { logs } = homeOf({ NANOBOT_HOME: home });
    const files = await Promise.all(
      (await readdir(logs)).map((name) => readFile(join(logs, name), 'utf8')),
    );
    const log = files.join('');
    expect(log).not.toContain(anna.number);
    expect(log).not.toContain(world.phone.number);
    const turn = /"turnId":"([^"]+)"/.exec(log)?.[1] ?? '';
    expect(turn).toBe(`whatsapp:+…${anna.number.slice(-4)}#1`);
    const { code, stdout } = await runNanobot(['trace', turn], { home });
    expect(code).toBe(0);
    expect(stdout).toContain(`turn whatsapp:+${anna.number}#1`);
    const refused = log.split('\n').find((line) => line.includes('message not delivered'));
    const { id } = JSON.parse(refused ?? '{}');
    expect((await runNanobot(['trace', id], { home })).stdout).toMatch(/^outbound .* dead$/m);
  });
});

describe('an answer', () => {
  it('waits for the connection without a try, and goes out as soon as it is there', async () => {
    const world = await linkedWorld();
    const anna = await world.server.contact(world.phone);
    await ask(anna, 'nonce-before');
    const thinking = Promise.withResolvers<void>();
    world.model.respond(() => ({ chunks: [thinking.promise, 'nonce-waiting'] }));
    const asked = world.model.requests.length;
    await anna.writes('take your time');
    await expect.poll(() => world.model.requests.length, { timeout: WAIT_MS }).toBe(asked + 1);
    world.phone.refuseLogins({ kind: 'failure', reason: 503 });
    await world.phone.end({ kind: 'drop' });
    await expect.poll(() => readiness(world), { timeout: WAIT_MS }).toBe(503);
    thinking.resolve();
    const trace = async () =>
      (await runNanobot(['trace', 'last'], { home: world.home.path })).stdout;
    await expect.poll(trace, { timeout: WAIT_MS }).toContain('queued');
    for (let start = 0; start < STARTS_WHILE_OFFLINE; start += 1) {
      await world.kill();
      await world.start();
      await expect.poll(() => readiness(world), { timeout: WAIT_MS }).toBe(503);
    }
    await world.kill();
    world.phone.refuseLogins(undefined);
    await world.start();
    await anna.sees(says('nonce-waiting'), WAIT_MS);
    await expect.poll(trace, { timeout: WAIT_MS }).toMatch(/sending: attempt 1$/m);
    expect(anna.seen.filter(says('nonce-waiting'))).toHaveLength(1);
  });

  it('under way when the gateway is told to stop is delivered before it leaves', async () => {
    const world = await linkedWorld();
    const anna = await world.server.contact(world.phone);
    await ask(anna, 'nonce-first');
    const thought = Promise.withResolvers<void>();
    world.model.respond(() => ({ chunks: ['nonce-last ', thought.promise, 'words'] }));
    const asked = world.model.requests.length;
    await anna.writes('think long');
    await world.model.received(asked + 1);
    const stopped = world.gateway.stop();
    await world.gateway.printed(/stopp|Ctrl\+C again/i);
    thought.resolve();
    expect(await stopped).toBe(0);
    expect(anna.seen.map(({ text }) => text)).toEqual(['nonce-first', 'nonce-last words']);
    expect(world.phone.outbound.every(({ acked }) => acked)).toBe(true);
  });

  it('grows in the chat while it is written, where that is switched on', async () => {
    const world = await linkedWorld({ streaming: true });
    const anna = await world.server.contact(world.phone);
    const thought = Promise.withResolvers<void>();
    const beginning = 'The answer to this has several parts. '.repeat(8);
    world.model.respond(() => ({ chunks: [beginning, thought.promise, 'nonce-end'] }));
    await anna.writes('think long');
    const draft = await anna.sees(says('The answer to this'), WAIT_MS);
    expect(draft.text).not.toContain('nonce-end');
    thought.resolve();
    const answer = await anna.sees(says('nonce-end'), WAIT_MS);
    expect(answer.id).toBe(draft.id);
    expect(answer.earlier.length).toBeGreaterThan(0);
    expect(anna.seen).toHaveLength(1);
  });

  it('in the chat with oneself is no question to the agent', async () => {
    const world = await linkedWorld({ allowFrom: [], selfChat: true });
    const { phone, model } = world;
    const shown = (nonce: string) => () => phone.selfChat.filter(says(nonce)).length;
    for (const nonce of ['nonce-one', 'nonce-two', 'nonce-three']) {
      await phone.writesToSelf(`please say ${nonce}`);
      await expect.poll(shown(nonce), { timeout: WAIT_MS }).toBe(1);
    }
    // What the agent wrote comes back from the phone, under the id it was sent with.
    const [own] = phone.selfChat.filter(says('nonce-one')).slice(-1);
    await phone.writesToSelf('please say nonce-echo', own === undefined ? {} : { id: own.id });
    await phone.writesToSelf('please say nonce-four');
    await expect.poll(shown('nonce-four'), { timeout: WAIT_MS }).toBeGreaterThan(0);
    expect(model.requests).toHaveLength(4);
    expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('nonce-echo');
  });
});

describe('a stranger who sends many messages that nobody can read', () => {
  it('keeps nobody waiting, and fills neither memory nor log', async () => {
    const world = await linkedWorld();
    const anna = await world.server.contact(world.phone);
    const eve = await world.server.contact(world.phone, { name: 'Eve' });
    await ask(anna, 'nonce-before');
    await ask(eve, 'nonce-mine');
    const [memory, log] = [await residentMb(world), (await world.home.logs()).length];
    const sent = world.phone.ownSent.length;
    await eve.writesJunk(JUNK);
    await ask(anna, 'nonce-behind');
    expect(world.phone.queued).toBeLessThan(10);
    expect((await residentMb(world)) - memory).toBeLessThan(MAX_GROWTH_MB);
    expect((await world.home.logs()).length - log).toBeLessThan(10_000);
    expect(world.phone.ownSent.length - sent).toBe(1);
    await ask(eve, 'nonce-readable');
  });
});

async function residentMb({ gateway }: WhatsAppWorld): Promise<number> {
  const status = await readFile(`/proc/${gateway.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
