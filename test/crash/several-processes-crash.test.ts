// Several processes of the gateway on one PostgreSQL while people write by Telegram, WhatsApp and
// mail: killed, stopped and continued, the database restarted, one after the other at random. Each
// message is answered once, and those of a chat in their order. Long, so only in the full campaign.

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { isFullCampaign } from '../support/campaign.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';
import { type MailServers, mailServersAbsent, startMailServers } from '../support/mail-servers.ts';
import { mailsIn, sendAsPerson } from '../support/mail-servers-host.ts';
import { mailboxAt } from '../support/mailbox-config.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import {
  type Member,
  makeProcessCluster,
  type ProcessCluster,
} from '../support/process-cluster.ts';
import { linkByQr } from '../support/whatsapp-gateway.ts';
import type { Contact, Phone, WhatsAppServer } from '../support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import { trustVariables } from '../support/whatsapp-server/trust.ts';

/** `CRASH_SCALE=0.1` tries a tenth of all. */
const SCALE = Number(process.env['CRASH_SCALE'] ?? 1);
const scaled = (figure: number) => Math.ceil(figure * SCALE);
const KILLS = scaled(200);
const STOPS = scaled(30);
const RESTARTS = scaled(20);
const CHATS = { telegram: 160, whatsapp: 20, mail: 20 } as const;
const PER_ROUND = 8;
const ROLES = ['channels', 'channels', 'workers', 'workers', 'workers'] as const;
const PROBE = 900;
const FIRST = 1000;
const WAIT_MS = 180_000;
/**
 * A mail whose end was not heard is looked for in the mailbox, and sent again if it is not there ten
 * minutes later: the campaign may take that much longer than its events.
 */
const MAIL_WAIT_MS = 900_000;
const THINKING_MS = 300;
const isSkipped = !hasPostgres || !isFullCampaign() || mailServersAbsent() !== undefined;

let server: PostgresServer;
let telegram: BotApi;
let whatsapp: WhatsAppServer;
let phone: Phone;
let mail: MailServers;
let model: LlmServer;
let cluster: ProcessCluster;

beforeAll(async () => {
  if (isSkipped) return;
  server = await startPostgres(['max_connections=100']);
  telegram = await startBotApi();
  whatsapp = await startWhatsAppServer();
  phone = await whatsapp.phone();
  mail = await startMailServers();
  model = await startLlmServer({
    respond: (request) => ({ ...echo(request), gate: delay(THINKING_MS) }),
  });
  const config = (): ConfigInput => ({
    agents: { defaults: { model: 'openai/sim-1' } },
    coalesce: { quietMs: 0, continuationMs: 0 },
    limits: { messages: { perMinute: 0, perDay: 0 } },
    providers: { openai: { apiKey: 'sk-several', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot, allowFrom: ['*'] },
        streaming: false,
      },
      whatsapp: {
        ...{ enabled: true, socketUrl: whatsapp.url, allowFrom: ['*'] },
        pacing: { chatPerMinute: 1000, accountPerMinute: 1000, minGapMs: 0, maxGapMs: 0 },
      },
      email: {
        ...mailboxAt(mail),
        ...{ allowFrom: ['*'], acceptUnverified: true, pollSecs: 5 },
        limits: { perHour: 0, unprovenPerDay: 0, unprovenDomainPerHour: 5000 },
      },
    },
  });
  cluster = await makeProcessCluster(await server.database(), config, trustVariables(whatsapp));
  for (const role of ROLES) await cluster.add(role);
  // The first one makes the tables and the token, and is the one that can be linked.
  const [first, ...others] = cluster.members;
  await first?.start();
  if (first?.process === undefined) return;
  await linkByQr(first.process, phone);
  await phone.online();
  await mailboxFollowed(first.process);
  await Promise.all(others.map((member) => member.start()));
}, 300_000);
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await Promise.all([model, mail, whatsapp, telegram].map((each) => each?.[Symbol.asyncDispose]()));
  await server?.[Symbol.asyncDispose]();
});

/** Mail from before the first look at the mailbox is never answered. */
async function mailboxFollowed({ address, credentials }: NonNullable<Member['process']>) {
  const isFollowed = async () => {
    const response = await fetch(`${address}/readyz`, { headers: credentials });
    return /"email".*"running"/s.test(await response.text());
  };
  while (!(await isFollowed())) await delay(100);
}

type Chat = {
  readonly name: string;
  readonly sent: string[];
  says(nonce: string): Promise<unknown>;
  /** The texts that the person got, in order. */
  texts(): Promise<readonly string[]>;
};

const heard = (id: number) =>
  telegram
    .chat(id)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);

const telegramChat = (id: number): Chat => ({
  name: `telegram ${id}`,
  sent: [],
  says: async (nonce) => telegram.say(id, `repeat ${nonce}`),
  texts: async () => heard(id),
});

const whatsappChat = (contact: Contact): Chat => ({
  name: `whatsapp ${contact.number}`,
  sent: [],
  says: (nonce) => contact.writes(`repeat ${nonce}`),
  texts: async () => contact.seen.map(({ text }) => text),
});

/** Each mail is a conversation of its own, so no order is kept between them. */
const mailChat = (from: string): Chat => ({
  name: from,
  sent: [],
  says: (nonce) =>
    sendAsPerson(mail, { from, subject: nonce, text: `repeat ${nonce}`, isSigned: false }),
  texts: () => mailsIn(mail, from),
});

const noncesIn = (texts: readonly string[]) =>
  texts.flatMap((text) => [...new Set(text.match(/\bnonce-\w+/g))]);

const isMarked = (text: string) => text.includes('the first try was not confirmed');

/** Of all chats: what lacks, what came twice without the mark, and the chats out of order. */
async function compared(chats: readonly Chat[]) {
  const lost: string[] = [];
  const doubled: string[] = [];
  const unordered: string[] = [];
  let marked = 0;
  for (const { name, sent, texts } of chats) {
    const got = await texts();
    marked += got.filter(isMarked).length;
    const once = noncesIn(got.filter((text) => !isMarked(text)));
    const seen = [...new Set(noncesIn(got))];
    lost.push(...sent.filter((nonce) => !seen.includes(nonce)).map((nonce) => `${name} ${nonce}`));
    doubled.push(
      ...sent
        .filter((nonce) => once.filter((each) => each === nonce).length > 1)
        .map((nonce) => `${name} ${nonce}`),
    );
    const isInOrder = sent.filter((nonce) => seen.includes(nonce)).join() === seen.join();
    if (!isInOrder && !name.includes('@')) unordered.push(`${name} ${seen.join(' ')}`);
  }
  return { lost, doubled, unordered, marked };
}

type Event = 'kill' | 'stop' | 'restart';

/** All events in an order that a seed decides. */
function eventsOf(random: () => number): readonly Event[] {
  const all: Event[] = [
    ...Array.from({ length: KILLS }, () => 'kill' as const),
    ...Array.from({ length: STOPS }, () => 'stop' as const),
    ...Array.from({ length: RESTARTS }, () => 'restart' as const),
  ];
  return all
    .map((event) => [random(), event] as const)
    .toSorted(([one], [other]) => one - other)
    .map(([, event]) => event);
}

/** Park and Miller's generator. */
function seeded(seed: number): () => number {
  let at = seed;
  return () => {
    at = (at * 48_271) % 2_147_483_647;
    return at / 2_147_483_647;
  };
}

const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** As a service manager does it: one that finds no database at its start ends. */
async function startAgain(member: Member): Promise<void> {
  for (;;) {
    try {
      await member.start();
      return;
    } catch (error) {
      if (!String(error).includes('is not reachable')) throw error;
    }
  }
}

/** Does this to a process or the database; the function that it returns makes good what it did. */
async function happen(event: Event, victim: Member): Promise<() => Promise<void>> {
  switch (event) {
    case 'restart':
      await server.crash();
      await server.start();
      return async () => undefined;
    case 'stop':
      victim.freeze();
      return async () => victim.thaw();
    case 'kill':
      await victim.kill();
      return () => startAgain(victim);
  }
}

describe.skipIf(isSkipped)('several processes that die, stand still and lose the database', () => {
  it('lose nothing, answer nothing twice and keep the order of each chat', async () => {
    const random = seeded(Number(process.env['FC_SEED'] ?? 20_261_128));
    const contacts: Contact[] = [];
    for (let each = 0; each < CHATS.whatsapp; each += 1) {
      contacts.push(await whatsapp.contact(phone));
    }
    const chats = [
      ...Array.from({ length: CHATS.telegram }, (_, at) => telegramChat(FIRST + at)),
      ...contacts.map(whatsappChat),
      ...Array.from({ length: CHATS.mail }, (_, at) => mailChat(`p${at}@person.test`)),
    ];
    const events = eventsOf(random);
    const takeoversMs: Record<Event, number[]> = { kill: [], stop: [], restart: [] };
    const recovering = new Map<Member, Promise<void>>();
    let next = 0;
    for (const [round, event] of events.entries()) {
      const victim = cluster.members[Math.floor(random() * cluster.members.length)];
      if (victim === undefined) continue;
      // At least one of its role lives.
      const others = cluster.members.filter(({ role }) => role === victim.role);
      await Promise.all(others.map((other) => recovering.get(other)));
      for (let each = 0; each < PER_ROUND; each += 1) {
        // Chats of all channels in each round; a step without a common factor meets all of them.
        const chat = chats[(next * 7) % chats.length];
        const nonce = `nonce-c${next}`;
        next += 1;
        chat?.sent.push(nonce);
        await chat?.says(nonce);
      }
      const isOver = await happen(event, victim);
      const at = performance.now();
      const probe = `nonce-p${round}x`;
      telegram.say(PROBE, `repeat ${probe}`);
      await telegram.waitFor(() => heard(PROBE).some((text) => text.includes(probe)), WAIT_MS);
      takeoversMs[event].push(Math.round(performance.now() - at));
      recovering.set(victim, isOver());
      if (round % 10 === 9) process.stderr.write(`${round + 1} of ${events.length} events\n`);
    }
    await Promise.all(recovering.values());
    const late = performance.now() + MAIL_WAIT_MS;
    let found = await compared(chats);
    for (let looks = 0; found.lost.length > 0 && performance.now() < late; looks += 1) {
      if (looks % 30 === 1) process.stderr.write(`waits for ${found.lost.join(', ')}\n`);
      await delay(2000);
      found = await compared(chats);
    }
    const times = Object.entries(takeoversMs).map(([event, list]) => {
      const sorted = list.toSorted((one, other) => one - other);
      const [half, most] = [percentile(sorted, 0.5), percentile(sorted, 0.95)];
      return `${sorted.length} x ${event}: p50 ${half} ms, p95 ${most} ms, at most ${sorted.at(-1) ?? 0} ms`;
    });
    process.stderr.write(
      `${next} messages of ${chats.length} chats; lost ${found.lost.length}, doubled ` +
        `${found.doubled.length}, chats out of order ${found.unordered.length}, sent again with ` +
        `the mark ${found.marked}; WhatsApp linked ${phone.counts.registrations} time(s)\n` +
        `answered after ${times.join('; ')}\n`,
    );
    expect(found).toMatchObject({ lost: [], doubled: [], unordered: [] });
    expect(phone.counts.registrations).toBe(1);
    expect(telegram.violations).toEqual([]);
  }, 5_400_000);
});
