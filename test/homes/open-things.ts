// Today's program on a home of commit 3e7dcfc, which was killed with something open of every kind: each
// is finished from outside, as the people and services that wait for it see it. `make-v1.ts` makes the
// home and `peers.json`, what the other sides know of it; the clock stands shortly behind the kill.

import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BufferJSON } from '@whiskeysockets/baileys';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import type { SavedChat } from '../support/bot-api-ledger.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import {
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  startLlmServer,
} from '../support/llm-server.ts';
import { type MailBox, startMailBox } from '../support/mail-box.ts';
import type {
  Contact,
  Phone,
  SavedPhone,
  WhatsAppServer,
} from '../support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import type { SavedSignalDevice } from '../support/whatsapp-server/signal-device.ts';
import { trustVariables } from '../support/whatsapp-server/trust.ts';
import { shiftDate, shiftOption } from './shifted-date.ts';

const V1 = join(import.meta.dirname, 'v1');
const OWNER = 700;
const MIA = 701;
const BEN = 702;
const CLEO = 703;
const DORA = 704;
const EVE = 705;
const MINUTE_MS = 60_000;
/** Some seconds before the two jobs of the home are due. */
const JOBS_SOON_MS = Date.UTC(2026, 0, 15, 14, 0, 3);
const HEAR_MS = 45_000;

type Peers = {
  readonly killedAt: number;
  readonly telegram: {
    readonly chats: readonly SavedChat[];
    readonly unconfirmed: readonly Readonly<Record<string, unknown>>[];
    readonly nextUpdateId: number;
  };
  readonly mails: readonly string[];
  readonly whatsapp: SavedPhone & { readonly anna: SavedSignalDevice };
};
type WhatsApp = {
  readonly server: WhatsAppServer;
  readonly phone: Phone;
  readonly anna: Contact;
};

let opened = new AsyncDisposableStack();
let telegram: BotApi;
let model: LlmServer;
let box: MailBox;
let whatsapp: WhatsApp;
let home: TestHome;
let gateway: GatewayProcess;
let env: Readonly<Record<string, string>>;
let killedAt: number;

/** Does what it did before the kill, and finishes what was held then. */
function reply({ lastUserText: text, toolResults, system, body }: LlmRequest): LlmReply {
  if (toolResults.length > 0) return { chunks: [toolResults.map((one) => one.text).join('\n')] };
  const [, name, json] = /^CALL (\w+) (\{.*\})$/m.exec(text) ?? [];
  if (name !== undefined && json !== undefined) {
    return { toolCalls: [{ name, arguments: json }] };
  }
  const [, wanted] = /please say (nonce-\w+)/.exec(text) ?? [];
  if (wanted !== undefined) return { chunks: [`Heard: ${wanted}`] };
  if (text.includes('nonce-found')) return { chunks: ['Told: nonce-found'] };
  if (text.includes('TASK-sub')) return { chunks: ['nonce-found'] };
  if (text.includes('SUM-UP'))
    return { chunks: [`{"points":"nonce-sum of ${/nonce-milk/.exec(text)}"}`] };
  if (text.includes('TASK-job')) return { chunks: ['The paper is here: nonce-print'] };
  if (text.includes('skills/eve')) return { chunks: ['Seen: skills/eve'] };
  if (text.includes('Rome')) return { chunks: ['Told: Rome'] };
  if (text.includes('What do you remember?')) {
    return { chunks: [`I remember ${/nonce-dog/.exec(system)}.`] };
  }
  if (text.includes('What do you see?')) {
    const seen = JSON.stringify(body).match(/nonce-(?:locker|first5|third5)\b/g) ?? [];
    return { chunks: [`I see ${[...new Set(seen)].join()}.`] };
  }
  return { chunks: ['Heard.'] };
}

async function startWhatsApp(saved: Peers['whatsapp']): Promise<WhatsApp> {
  const server = opened.use(await startWhatsAppServer());
  const phone = await server.phone({ saved });
  return { server, phone, anna: await server.contact(phone, { name: 'Anna', saved: saved.anna }) };
}

/** The stored configuration, with the addresses of this test's services. */
async function configOfNow() {
  const config = JSON.parse(await readFile(join(V1, 'home/config.json'), 'utf8'));
  config.providers.openai.apiBase = model.openaiBase;
  config.channels.telegram.apiRoot = telegram.apiRoot;
  config.channels.whatsapp.socketUrl = whatsapp.server.url;
  config.channels.email.imapPort = box.imapPort;
  config.channels.email.smtpPort = box.smtpPort;
  return config;
}

/** The program at this time; the simulators live in it as well. */
async function startAt(at: number): Promise<void> {
  const shift = at - Date.now();
  opened.use(shiftDate(shift));
  const { NODE_OPTIONS: trusting = '', ...trust } = trustVariables(whatsapp.server);
  shiftMs += shift;
  env = { ...extra, ...trust, NODE_OPTIONS: `${trusting} ${shiftOption(shiftMs)}` };
  gateway = await home.start(env);
}
let shiftMs = 0;

const bot = (chat: number) => telegram.chat(chat).messages.filter(({ from }) => from === 'bot');
const textsOf = (chat: number) => bot(chat).map(({ text }) => text);
const hears = (chat: number, like: RegExp, after = 0) =>
  telegram.waitFor(
    () =>
      textsOf(chat)
        .slice(after)
        .find((text) => like.test(text)),
    HEAR_MS,
  );
async function asks(person: number, words: string, like: RegExp): Promise<string> {
  const before = bot(person).length;
  telegram.say(person, words);
  return hears(person, like, before);
}
const workspace = (path: string) =>
  readFile(join(home.path, 'workspace', path), 'utf8').catch(() => undefined);

/** What is done to the home before the start; returns variables of the program. */
export type Prepare = (home: TestHome) => Promise<Readonly<Record<string, string>>>;

let extra: Readonly<Record<string, string>> = {};

async function begin(prepare: Prepare): Promise<void> {
  opened = new AsyncDisposableStack();
  shiftMs = 0;
  const text = await readFile(join(V1, 'peers.json'), 'utf8');
  const peers: Peers = JSON.parse(text, BufferJSON.reviver);
  killedAt = peers.killedAt;
  telegram = opened.use(await startBotApi({ chats: peers.telegram.chats }));
  opened.defer(() => expect(telegram.violations).toEqual([]));
  telegram.jumpTo(peers.telegram.nextUpdateId);
  for (const update of peers.telegram.unconfirmed) telegram.offer(update);
  model = opened.use(await startLlmServer({ respond: reply }));
  box = opened.use(await startMailBox());
  for (const mail of peers.mails) box.drop(mail);
  whatsapp = await startWhatsApp(peers.whatsapp);
  home = opened.use(await makeTestHome({}));
  await cp(join(V1, 'home'), home.path, { recursive: true, verbatimSymlinks: true });
  await home.writeConfig(await configOfNow());
  extra = await prepare(home);
  await startAt(killedAt + MINUTE_MS);
}

/** Defines the tests. */
export function finishesOpenThings(prepare: Prepare = async () => ({})): void {
  beforeAll(() => begin(prepare));
  afterAll(() => opened.disposeAsync());

  it('delivers the unsent answer once', async () => {
    await hears(BEN, /nonce-unsent/);
    await asks(BEN, 'please say nonce-next', /nonce-next/);
    expect(textsOf(BEN)).toEqual(['Heard: nonce-unsent', 'Heard: nonce-next']);
  });

  it('answers the message whose turn was under way, once', async () => {
    await hears(DORA, /nonce-hung/);
    await asks(DORA, 'please say nonce-next', /nonce-next/);
    expect(textsOf(DORA)).toEqual(['Heard: nonce-hung', 'Heard: nonce-next']);
  });

  it('answers what an unknown sender wrote when the owner lets them in', async () => {
    expect(textsOf(EVE)).toEqual([]);
    telegram.press(OWNER, OWNER, 'Allow');
    await hears(EVE, /^Heard: nonce-unknown$/);
  });

  it('carries the running subagent on, and tells what it found once', async () => {
    await hears(OWNER, /nonce-found/);
    await asks(OWNER, 'please say nonce-behind', /nonce-behind/);
    expect(textsOf(OWNER).filter((text) => text.includes('nonce-found'))).toHaveLength(1);
  });

  it('carries the running workflow on to its result', async () => {
    await hears(OWNER, /The sum is nonce-sum of nonce-milk/);
    expect(await workspace('sum.md')).toBe('nonce-sum of nonce-milk');
  });

  it('runs the call that waits for an approval when the owner presses, and tells the result', async () => {
    expect(await workspace('skills/eve/SKILL.md')).toBeUndefined();
    telegram.press(OWNER, OWNER, 'Allow once');
    await hears(OWNER, /^Seen: skills\/eve/);
    expect(await workspace('skills/eve/SKILL.md')).toBe('nonce-skill');
  });

  it('goes on with the turn that asked a question when the person presses', async () => {
    const before = bot(MIA).length;
    telegram.press(MIA, MIA, 'Rome');
    await hears(MIA, /^Told: Rome/, before);
  });

  it('sends the letter that waits for the owner', async () => {
    expect(box.sent).toEqual([]);
    telegram.press(OWNER, OWNER, 'Send');
    await expect.poll(() => box.sent.length).toBe(1);
    expect(box.sent[0]).toMatch(/^To: ben@person\.test\r$/m);
    expect(box.sent[0]).toMatch(/^Subject: Dinner\r$/m);
    expect(box.sent[0]).toContain('At eight, nonce-letter.');
  });

  it('answers the mail that was shown to the owner, in its thread', async () => {
    const before = bot(OWNER).length;
    telegram.press(OWNER, OWNER, 'Reply');
    await hears(OWNER, /Write the answer to anna@person\.test/);
    telegram.say(OWNER, 'At Luigi, nonce-reply.');
    await hears(OWNER, /anna@person\.test[\s\S]*nonce-reply/, before);
    telegram.press(OWNER, OWNER, 'Send');
    await expect.poll(() => box.sent.length).toBe(2);
    expect(box.sent[1]).toMatch(/^To: .*anna@person\.test/m);
    expect(box.sent[1]).toMatch(/^In-Reply-To: <lunch@person\.test>\r$/m);
    expect(box.sent[1]).toContain('At Luigi, nonce-reply.');
  });

  it('knows what it was told to remember', async () => {
    expect(await asks(OWNER, 'What do you remember?', /^I remember/)).toBe('I remember nonce-dog.');
  });

  it('connects WhatsApp with the stored keys, in the stored session and in new ones', async () => {
    const { server, phone, anna } = whatsapp;
    await phone.online(HEAR_MS);
    // What was being sent when the program was killed.
    await anna.sees(({ text }) => text === 'Heard: nonce-offline', HEAR_MS);
    const says = (nonce: string) => (message: { readonly text: string }) =>
      message.text.includes(nonce);
    await anna.writes('please say nonce-again');
    await anna.sees(says('nonce-again'), HEAR_MS);
    const dora = await server.contact(phone, { name: 'Dora' });
    await dora.writes('please say nonce-new', { addressing: { by: 'number', withAlt: true } });
    await dora.sees(says('nonce-new'), HEAR_MS);
    for (const { undecryptable, retriesAsked } of [anna, dora]) {
      expect({ undecryptable, retriesAsked }).toEqual({ undecryptable: 0, retriesAsked: 0 });
    }
    const copies = () => phone.ownSent.map(({ text }) => text);
    const answers = ['nonce-offline', 'nonce-again', 'nonce-new'].map((nonce) => `Heard: ${nonce}`);
    await expect.poll(copies).toEqual(answers);
    expect(phone.counts.registrations).toBe(0);
  });

  it('goes on in a conversation of several days and files, and finds what was said first', async () => {
    // The end of the last file is in view, the first day is found by its words.
    expect(await asks(CLEO, 'What do you see?', /^I see/)).toBe('I see nonce-third5.');
    const search = 'CALL session_search {"query":"locker"}';
    expect(await asks(CLEO, search, /locker is BLUE-17/)).toContain('2026-01-13');
    const { stdout } = await runNanobot(['sessions', 'search', 'locker'], { home: home.path, env });
    expect(stdout).toContain('BLUE-17');
  });

  it('fires the jobs at their time, and tells what came of them once', async () => {
    await asks(OWNER, '/cron', /nonce-pills/);
    expect(textsOf(OWNER).join()).not.toContain('nonce-print');
    const before = bot(OWNER).length;
    await gateway.stop();
    await startAt(JOBS_SOON_MS);
    await hears(OWNER, /nonce-pills/, before);
    await hears(OWNER, /nonce-print/, before);
    const list = await asks(OWNER, '/cron', /./);
    expect(list).not.toMatch(/nonce-p/);
    const told = textsOf(OWNER).slice(before);
    expect(told.filter((text) => /nonce-pills/.test(text))).toHaveLength(1);
    expect(told.filter((text) => /nonce-print/.test(text))).toHaveLength(1);
  });

  it('does nothing again after another start', async () => {
    const people = [OWNER, MIA, BEN, CLEO, DORA, EVE];
    const said = () => people.map((chat) => bot(chat).length);
    const before = said();
    await gateway.stop();
    await startAt(JOBS_SOON_MS + MINUTE_MS);
    for (const person of people) await asks(person, 'please say nonce-last', /nonce-last/);
    expect(said()).toEqual(before.map((count) => count + 1));
    expect(box.sent).toHaveLength(2);
    await whatsapp.phone.online(HEAR_MS);
    await whatsapp.anna.writes('please say nonce-last');
    await whatsapp.anna.sees(({ text }) => text === 'Heard: nonce-last', HEAR_MS);
    expect(whatsapp.anna.seen.map(({ text }) => text.replace('Heard: nonce-', ''))).toEqual([
      ...['offline', 'again', 'last'],
    ]);
  });
}
