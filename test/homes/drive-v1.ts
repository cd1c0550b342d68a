// Brings a home of commit 3e7dcfc into every state in which something is open, and leaves it as a killed
// process leaves it, with what the other sides know of it. Runs inside a checkout of that commit (see
// make-v1.ts), against that commit's own simulators; the days are those of `DAYS`.

import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  BufferJSON,
  DEFAULT_CONNECTION_CONFIG,
  type SignalDataSet,
  type SignalDataTypeMap,
} from '@whiskeysockets/baileys';
import { runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome } from '../support/gateway-process.ts';
import { type LlmReply, type LlmRequest, startLlmServer } from '../support/llm-server.ts';
import { startMailBox } from '../support/mail-box.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';
import { linkByQr } from '../support/whatsapp-gateway.ts';
import { startWhatsAppServer } from '../support/whatsapp-server/server.ts';
import { trustVariables } from '../support/whatsapp-server/trust.ts';
import { shiftDate, shiftOption } from './shifted-date.ts';

const OUT = process.argv[2] ?? '';
const DAYS = [13, 14, 15].map((day) => Date.UTC(2026, 0, day, 12));
const OWNER = 700;
/** Is asked a question. */
const MIA = 701;
/** Waits for an answer that Telegram does not take. */
const BEN = 702;
/** Has talked for three days. */
const CLEO = 703;
/** Waits for the model. */
const DORA = 704;
/** Is not known yet. */
const EVE = 705;
const HEAR_MS = 45_000;
const POLL_MS = 50;
const CAPABILITY = `
description: Sums up.
prompt: "SUM-UP {{ text }}"
output: { type: object, required: [points], properties: { points: { type: string } } }
`;
const WORKFLOW = `
description: Sums a file up.
steps:
  - { id: text, kind: tool, tool: read_file, arguments: { path: list.md } }
  - { id: sum, kind: llm_skill, capability: sum, with: { text: "{{ text.text }}" } }
  - { id: written, kind: tool, tool: write_file, arguments: { path: sum.md, content: "{{ sum.points }}" } }
result: "The sum is {{ sum.points }}"
`;
const MAIL = [
  'From: Anna <anna@person.test>',
  `To: ${AGENT}`,
  'Subject: Lunch',
  'Date: Thu, 15 Jan 2026 12:00:00 +0000',
  'Message-ID: <lunch@person.test>',
  '',
  'Where do we eat, nonce-mail?',
  '',
].join('\r\n');

type Begun = AsyncDisposable & {
  readonly gateway: GatewayProcess;
  readonly env: Readonly<Record<string, string>>;
};
/** What the WhatsApp server has beyond its contract. */
type Accounts = {
  account(number: string): { readonly device: { readonly preKeys: Map<number, Uint8Array> } };
};

const isOffline = Promise.withResolvers<void>();

/** Dora, the subagent and the workflow get no answer of the model. */
function reply({ lastUserText: text, toolResults }: LlmRequest): LlmReply {
  if (toolResults.length > 0) return { chunks: [toolResults.map((one) => one.text).join('\n')] };
  const [, name, json] = /CALL (\w+) (\{.*\})/.exec(text) ?? [];
  if (name !== undefined && json !== undefined) {
    return { toolCalls: [{ name, arguments: json }] };
  }
  if (/TASK-sub|SUM-UP|nonce-hung/.test(text)) return { fault: { kind: 'hang' } };
  const chunks = [`Heard: ${/nonce-\w+/.exec(text)?.[0] ?? 'nothing'}`];
  return text.includes('nonce-offline') ? { gate: isOffline.promise, chunks } : { chunks };
}
const calling = (name: string, args: object) => `CALL ${name} ${JSON.stringify(args)}`;

const devices = keepSignalDevices();
await using telegram = await startBotApi();
await using model = await startLlmServer({ respond: reply });
await using box = await startMailBox();
await using whatsapp = await startWhatsAppServer();
await using home = await makeTestHome({
  agents: {
    defaults: { model: 'openai/sim-1', maxTokens: 500 },
    workflows: { enabled: true },
  },
  providers: { openai: { apiKey: 'sk-of-a-stored-home', apiBase: model.openaiBase } },
  gateway: { port: 0 },
  coalesce: { quietMs: 0, continuationMs: 0 },
  sessions: { rotationSizeBytes: 10_000 },
  channels: {
    telegram: {
      ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot, streaming: false },
      allowFrom: [MIA, BEN, CLEO, DORA].map(String),
    },
    whatsapp: {
      ...{ enabled: true, socketUrl: whatsapp.url, allowFrom: ['*'] },
      pacing: { chatPerMinute: 1000, accountPerMinute: 1000, minGapMs: 0, maxGapMs: 0 },
    },
    email: {
      ...mailboxAt(box),
      bridge: 'unlisted',
    },
  },
});
for (const [path, text] of [
  ['capabilities/sum.yaml', CAPABILITY],
  ['workflows/sum.yaml', WORKFLOW],
  ['list.md', 'nonce-milk'],
] as const) {
  const file = join(home.path, 'workspace', path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const { NODE_OPTIONS: trusting = '', ...trust } = trustVariables(whatsapp);

/** The program from that day on; the simulators live in its time. */
async function begin(at = 0): Promise<Begun> {
  const shift = at - Date.now();
  const day = shiftDate(shift);
  const env = { ...trust, NODE_OPTIONS: `${trusting} ${shiftOption(shift)}` };
  const gateway = await home.start(env);
  return {
    gateway,
    env,
    async [Symbol.asyncDispose]() {
      await gateway.kill();
      day[Symbol.dispose]();
    },
  };
}

const heard = (chat: number) =>
  telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
const hears = (chat: number, like: RegExp, after = 0) =>
  telegram.waitFor(
    () =>
      heard(chat)
        .slice(after)
        .find((text) => like.test(text)),
    HEAR_MS,
  );
async function asks(person: number, words: string, like: RegExp, extra = {}): Promise<string> {
  const before = heard(person).length;
  telegram.say(person, words, { extra });
  return hears(person, like, before);
}
async function talks(name: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const nonce = `nonce-${name}${n}`;
    await asks(CLEO, `${nonce} ${'and it rained again, '.repeat(100)}`, new RegExp(nonce));
  }
}

{
  await using _ = await begin(DAYS[0]);
  await asks(CLEO, 'nonce-locker: the code of my locker is BLUE-17', /nonce-locker/);
  await talks('first', 6);
}
{
  await using _ = await begin(DAYS[1]);
  await talks('second', 6);
}
const { gateway, env } = await begin(DAYS[2]);
await talks('third', 6);
const args = ['pair', 'approve', 'telegram', `${OWNER}`, '--role', 'owner'];
const approved = await runNanobot(args, { home: home.path, env });
if (approved.code !== 0) throw new Error(approved.stderr);
await asks(OWNER, '/whoami', /Role: owner/);
await asks(OWNER, calling('remember', { fact: 'The dog is called nonce-dog.' }), /Remembered/);

const phone = await whatsapp.phone();
const steps = await linkByQr(gateway, phone);
if (steps.at(-1)?.kind !== 'done') throw new Error(`not linked: ${JSON.stringify(steps)}`);
await phone.online();
const anna = await whatsapp.contact(phone, { name: 'Anna' });
for (const nonce of ['nonce-wa1', 'nonce-wa2']) {
  await anna.writes(`please say ${nonce}`);
  await anna.sees(({ text }) => text.includes(nonce), HEAR_MS);
}

await asks(OWNER, '/cron add say in 2h: Take the pills, nonce-pills', /^Made: /);
await asks(OWNER, '/cron add in 2h: TASK-job nonce-paper', /^Made: /);
box.drop(MAIL);
await hears(OWNER, /nonce-mail/);
const letter = { to: 'ben@person.test', subject: 'Dinner', body: 'At eight, nonce-letter.' };
await asks(OWNER, calling('send_email', letter), /Send this\?/);
const quoted = {
  message_id: 1,
  date: 1,
  chat: { id: OWNER, type: 'private' },
  from: { is_bot: false, id: 666, first_name: 'Eve' },
  text: 'Please do as I say.',
};
const skill = { path: 'skills/eve/SKILL.md', content: 'nonce-skill' };
await asks(OWNER, calling('write_file', skill), /May I\?/, { reply_to_message: quoted });
await asks(OWNER, calling('spawn', { action: 'spawn', task: 'TASK-sub nonce-sub' }), /Started/);
await asks(OWNER, '/workflow run sum', /^Started: /);
const isAsked = (words: string) =>
  model.requests.some(
    ({ lastUserText, toolResults }) =>
      lastUserText.includes(words) && toolResults.length === 0 && !lastUserText.includes('CALL'),
  );
while (!isAsked('TASK-sub') || !isAsked('SUM-UP')) await model.received(model.requests.length + 1);

const question = { question: 'Which city?', choices: ['Berlin', 'Rome'] };
await asks(MIA, calling('ask_user', question), /Which city\?/);

telegram.say(EVE, 'please say nonce-unknown');
await hears(OWNER, /nonce-unknown/);
telegram.say(DORA, 'please say nonce-hung');
while (!isAsked('nonce-hung')) await model.received(model.requests.length + 1);

await anna.writes('please say nonce-offline');
while (!isAsked('nonce-offline')) await model.received(model.requests.length + 1);
phone.refuseLogins({ kind: 'close' });
await phone.end({ kind: 'drop' });
isOffline.resolve();
const annas = join(home.path, `sessions/whatsapp%3A+${anna.number}_2026-01-15.jsonl`);
while (!(await readFile(annas, 'utf8')).includes('Heard: nonce-offline')) await delay(POLL_MS);

const isForBen = ({ payload }: { readonly payload: Readonly<Record<string, unknown>> }) =>
  Number(payload['chat_id']) === BEN;
const busy = {
  kind: 'error',
  code: 429,
  description: 'Too Many Requests: retry after 30',
} as const;
const refused = telegram.fail({
  ...{ method: 'sendMessage', when: isForBen, times: Number.POSITIVE_INFINITY },
  fault: { ...busy, parameters: { retry_after: 30 } },
});
telegram.say(BEN, 'please say nonce-unsent');
await telegram.waitFor(() => refused.hits > 0);
await gateway.kill();

const linked = (whatsapp as unknown as Accounts).account(phone.number).device;
const [ofPhone, ofAnna] = await Promise.all(devices.map((device) => device.saved()));
const peers = {
  killedAt: Date.now(),
  telegram: {
    chats: telegram.chats().map(({ id, messages }) => ({ id, messages })),
    unconfirmed: telegram.unconfirmed,
    nextUpdateId: telegram.offer({}).update_id,
  },
  mails: [MAIL],
  whatsapp: {
    linked: { ...linked, preKeys: [...linked.preKeys] },
    phone: ofPhone,
    anna: ofAnna,
  },
};
await writeFile(join(OUT, 'peers.json'), `${JSON.stringify(peers, BufferJSON.replacer, 1)}\n`);
await cp(home.path, join(OUT, 'home'), { recursive: true, verbatimSymlinks: true });

/** The keys and sessions of every Signal device of the simulator, in the order of their making. */
function keepSignalDevices(): { saved(): Promise<object> }[] {
  const kept: { saved(): Promise<object> }[] = [];
  const make = DEFAULT_CONNECTION_CONFIG.makeSignalRepository;
  DEFAULT_CONNECTION_CONFIG.makeSignalRepository = (auth, ...others) => {
    const { creds, keys } = auth;
    const names = new Set<string>();
    const set = keys.set.bind(keys);
    keys.set = (data: SignalDataSet) => {
      for (const [type, values] of Object.entries(data)) {
        for (const id of Object.keys(values)) names.add(`${type}/${id}`);
      }
      return set(data);
    };
    const rowOf = async (name: string) => {
      const [type = '', ...rest] = name.split('/');
      const id = rest.join('/');
      return [name, (await keys.get(type as keyof SignalDataTypeMap, [id]))[id]] as const;
    };
    kept.push({
      async saved() {
        const rows = await Promise.all([...names].map(rowOf));
        return {
          registrationId: creds.registrationId,
          identity: creds.signedIdentityKey,
          signedPreKey: creds.signedPreKey,
          rows: rows.filter(([, value]) => value !== undefined),
        };
      },
    });
    return make(auth, ...others);
  };
  return kept;
}
