// The process dies between a WhatsApp message and its answer, and while the account is being linked.
// Nothing is lost, nobody is answered twice, and the phone never has to be linked again.

import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { loginSteps, startWhatsAppWorld, type WhatsAppWorld } from '../support/whatsapp-gateway.ts';
import type { Contact } from '../support/whatsapp-server/contract.ts';

const ANSWER_TIMEOUT_MS = 60_000;
const KILLS = campaign({ short: 4, full: 200 });
/** From the stanza on its way to well behind the answer. */
const LAST_KILL_MS = 600;
/** Has no factor in common with the number of kills, so that every moment is met. */
const KILL_STRIDE = 17;
const LOGIN_KILLS = campaign({ short: 2, full: 30 });
/** From the login to well behind the upload of the keys and the first sync. */
const LAST_LOGIN_KILL_MS = 500;
/** What a device uploads that has none on the server. */
const ALL_PRE_KEYS = 812;

let world: WhatsAppWorld;

beforeEach(async () => {
  world = await startWhatsAppWorld();
});

afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

const nonceOf = (who: number, turn: number) => `nonce-${'ab'[who]}${String(turn).padStart(3, '0')}`;

/**
 * Messages a person sees with this word, answers or the notice that theirs was set aside: each message
 * ends in one of both. The same message sent again under its id shows once.
 */
const answersWith = (contact: Contact, nonce: string) =>
  contact.seen.filter(({ text }) => text.includes(nonce));

async function allAnsweredOnce(contacts: readonly Contact[], turns: number) {
  for (const [who, contact] of contacts.entries()) {
    for (let turn = 0; turn < turns; turn += 1) {
      const nonce = nonceOf(who, turn);
      await contact.sees(({ text }) => text.includes(nonce), ANSWER_TIMEOUT_MS);
    }
  }
  for (const [who, contact] of contacts.entries()) {
    for (let turn = 0; turn < turns; turn += 1) {
      const answers = answersWith(contact, nonceOf(who, turn));
      expect(answers, JSON.stringify(answers)).toHaveLength(1);
    }
  }
}

describe('kill -9 with a linked account', () => {
  it(`loses and doubles nothing over ${KILLS} kills between message and answer`, async () => {
    await world.link();
    const contacts = [
      await world.server.contact(world.phone),
      await world.server.contact(world.phone),
    ];
    for (let turn = 0; turn < KILLS; turn += 1) {
      await world.phone.online(ANSWER_TIMEOUT_MS);
      for (const [who, contact] of contacts.entries()) {
        await contact.writes(`repeat ${nonceOf(who, turn)}`);
      }
      // Early and late ones in turn, so that not every try of a message dies.
      await delay((LAST_KILL_MS * ((turn * KILL_STRIDE) % KILLS)) / KILLS);
      await world.kill();
      await world.start();
    }
    await allAnsweredOnce(contacts, KILLS);
    for (const { seen } of contacts) {
      const setAside = seen.filter(({ text }) => text.includes('set aside'));
      expect(setAside.length).toBeLessThan(Math.max(2, KILLS / 9));
    }
    expect(world.phone.counts.registrations).toBe(1);
    expect(contacts.map(({ undecryptable }) => undecryptable)).toEqual([0, 0]);
  });
});

describe('kill -9 while the account is being linked', () => {
  it('leaves either a working link or none, wherever it struck', async () => {
    let isLinked = false;
    for (let tries = 0; tries < 12; tries += 1) {
      isLinked = await linkAndKillAfter(tries * 25);
      await world.start();
      if (isLinked) break;
      if (world.phone.linked) {
        // The phone believes in the link: then it must work without another scan.
        await world.phone.online(ANSWER_TIMEOUT_MS);
        isLinked = true;
        break;
      }
    }
    if (!isLinked) await world.link();
    const contact = await world.server.contact(world.phone);
    await contact.writes('repeat nonce-linked');
    await contact.sees(({ text }) => text.includes('nonce-linked'), ANSWER_TIMEOUT_MS);
  });
});

describe('kill -9 while the first login uploads its keys and gets the first sync', () => {
  it(`loses and doubles nothing over ${LOGIN_KILLS} kills, and links once`, async () => {
    const { server, phone } = world;
    const contacts = [await server.contact(phone), await server.contact(phone)];
    phone.wantsAllPreKeys(true);
    await linkAndKillBeforeLogin();
    for (let turn = 0; turn < LOGIN_KILLS; turn += 1) {
      for (const [who, contact] of contacts.entries()) {
        await contact.writes(`repeat ${nonceOf(who, turn)}`);
      }
      const { logins } = phone.counts;
      await world.start();
      await expect.poll(() => phone.counts.logins).toBeGreaterThan(logins);
      await delay((LAST_LOGIN_KILL_MS * turn) / LOGIN_KILLS);
      await world.kill();
    }
    await world.start();
    await allAnsweredOnce(contacts, LOGIN_KILLS);
    expect(phone.preKeys).toBeGreaterThan(ALL_PRE_KEYS - 2 * LOGIN_KILLS);
    expect(phone.counts.registrations).toBe(1);
    expect(contacts.map(({ undecryptable }) => undecryptable)).toEqual([0, 0]);
  });
});

/** The phone believes in the link, and the process dies before it could log in. */
async function linkAndKillBeforeLogin(): Promise<void> {
  world.phone.refuseLogins({ kind: 'silence' });
  for await (const step of stepsUntilDeath()) {
    if (step.kind !== 'show_qr') continue;
    await world.phone.scan(step.qr);
    await world.kill();
  }
  world.phone.refuseLogins(undefined);
}

async function* stepsUntilDeath() {
  try {
    yield* loginSteps(world.gateway, {});
  } catch {
    // The gateway died under the request.
  }
}

/** Kills the gateway this long after the phone has scanned; true where the login was done before. */
async function linkAndKillAfter(ms: number): Promise<boolean> {
  const steps = loginSteps(world.gateway, {});
  let isDone = false;
  try {
    for await (const step of steps) {
      if (step.kind === 'done') isDone = true;
      if (step.kind !== 'show_qr') continue;
      const scanned = world.phone.scan(step.qr).catch(() => undefined);
      await delay(ms);
      await world.kill();
      await scanned;
    }
  } catch {
    // The gateway died under the request.
  }
  return isDone;
}
