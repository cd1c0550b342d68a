// One linked WhatsApp account under load: memory and processor time of the whole gateway, beside a
// bare Baileys bot in the same run. The server's certificate root is not installed: this version of
// Baileys takes any, and a preload would change what is measured.

import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LlmServer, startLlmServer } from '../test/support/llm-server.ts';
import { loginSteps } from '../test/support/whatsapp-gateway.ts';
import type { Contact, Phone, WhatsAppServer } from '../test/support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../test/support/whatsapp-server/server.ts';
import { NODE_FLAGS, type Subject, start, startConfigured, subjectOf } from './subject.ts';
import { nonceAnswer, UNPACED } from './whatsapp-load.ts';

const MESSAGES = 10_000;
const CONTACTS = 100;
const AT_ONCE = 10;
/** An idle process gives memory back after some seconds. */
const SETTLE_MS = 15_000;
const ANSWER_TIMEOUT_MS = 60_000;
const START_TIMEOUT_MS = 30_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const row = (...cells: readonly (string | number)[]) => console.log(`| ${cells.join(' | ')} |`);

type World = { readonly server: WhatsAppServer; readonly model: LlmServer; readonly phone: Phone };

export async function whatsapp(): Promise<void> {
  row('process', 'RSS linked MB', 'RSS at the last message MB', 'at rest MB', 'CPU ms/message');
  row('---', '---', '---', '---', '---');
  for (const startSubject of [startBare, startAccount, startNanobot]) {
    await using server = await startWhatsAppServer();
    await using model = await startLlmServer({ record: false, respond: answer });
    const world = { server, model, phone: await server.phone() };
    await using subject = await startSubject(world);
    await world.phone.online(START_TIMEOUT_MS);
    await pause(SETTLE_MS);
    const linkedMb = subject.rssMb();
    const cpuBefore = subject.cpuMs();
    await converse(world);
    const perMessage = (subject.cpuMs() - cpuBefore) / MESSAGES;
    const loadedMb = subject.rssMb();
    await pause(SETTLE_MS);
    const figures = [linkedMb, loadedMb, subject.rssMb(), perMessage];
    row(subject.name, ...figures.map((figure) => figure.toFixed(1)));
  }
}

const answer = ({ lastUserText }: { readonly lastUserText: string }) => ({
  chunks: [nonceAnswer(lastUserText)],
});

/** A few people at once, each with the next message when the last one was answered. */
async function converse({ server, phone }: World): Promise<void> {
  const contacts: Contact[] = [];
  for (let index = 0; index < CONTACTS; index += 1) contacts.push(await server.contact(phone));
  let next = 0;
  async function lane() {
    for (let number = next++; number < MESSAGES; number = next++) {
      const contact = contacts[number % CONTACTS];
      const nonce = `nonce-${number}x`;
      await contact?.writes(`please say ${nonce}`);
      await contact?.sees(({ text }) => text.includes(nonce), ANSWER_TIMEOUT_MS);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

async function startBare({ server, model, phone }: World): Promise<Subject> {
  const child = start(['bench/bare-whatsapp-bot.ts'], {
    BENCH_SOCKET_URL: server.url,
    BENCH_MODEL_BASE: model.openaiBase,
  });
  await scan(child, phone);
  return subjectOf('bare Baileys bot', child, async () => undefined);
}

async function startAccount({ server, phone }: World): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  const child = start([...NODE_FLAGS, 'bench/whatsapp-account.ts'], {
    BENCH_SOCKET_URL: server.url,
    BENCH_FOLDER: folder,
  });
  await scan(child, phone);
  const cleanUp = () => rm(folder, { recursive: true, force: true });
  return subjectOf('the account alone', child, cleanUp);
}

async function scan(child: ChildProcess, phone: Phone): Promise<void> {
  const qr = new Promise<string>((resolve) => {
    child.on('message', (message) => resolve(String(Reflect.get(Object(message), 'qr'))));
  });
  await phone.scan(await qr);
}

async function startNanobot({ server, model, phone }: World): Promise<Subject> {
  const { subject, home } = await startConfigured('nanobot', {
    model,
    quietMs: 0,
    channels: {
      whatsapp: {
        enabled: true,
        socketUrl: server.url,
        allowFrom: ['*'],
        pacing: UNPACED,
      },
    },
  });
  for await (const step of loginSteps(await gatewayIn(home), {})) {
    if (step.kind === 'show_qr') await phone.scan(step.qr);
  }
  return subject;
}

/** Where the gateway of this home listens, and what it wants to be shown. */
async function gatewayIn(home: string): Promise<Parameters<typeof loginSteps>[0]> {
  for (const until = Date.now() + START_TIMEOUT_MS; Date.now() < until; await pause(50)) {
    const text = await readFile(join(home, 'gateway.json'), 'utf8').catch(() => '{}');
    const { address } = JSON.parse(text);
    if (typeof address !== 'string') continue;
    const token = (await readFile(join(home, 'gateway-token'), 'utf8')).trim();
    return { address, credentials: { authorization: `Bearer ${token}` } };
  }
  throw new Error(`no gateway in ${home}`);
}
