// One linked WhatsApp account under load: memory and processor time of the whole gateway, beside a
// bare Baileys bot in the same run. The server's certificate root is not installed: this version of
// Baileys accepts any, and a preload would change what is measured.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { type LlmServer, startLlmServer } from '../test/support/llm-server.ts';
import { loginSteps } from '../test/support/whatsapp-gateway.ts';
import type { Contact, Phone, WhatsAppServer } from '../test/support/whatsapp-server/contract.ts';
import { startWhatsAppServer } from '../test/support/whatsapp-server/server.ts';
import { configured, nodeFlags, ROOT, type Subject, start } from './subject.ts';
import { figure, header, row } from './table.ts';
import { nonceAnswer, UNPACED } from './whatsapp-load.ts';

const MESSAGES = Number(process.env['NANOBOT_BENCH_MESSAGES'] ?? 10_000);
const CONTACTS = 100;
const AT_ONCE = 10;
/** An idle process returns memory after some seconds. */
const SETTLE_MS = 15_000;
const ANSWER_TIMEOUT_MS = 60_000;
const START_TIMEOUT_MS = 30_000;

type World = {
  readonly server: WhatsAppServer;
  readonly model: LlmServer;
  readonly phone: Phone;
  /** Disposes the process and its files. */
  readonly stack: AsyncDisposableStack;
};

const PROCESSES: Readonly<Record<string, (world: World) => Promise<Subject>>> = {
  'bare Baileys bot': startBare,
  'the account alone': startAccount,
  nanobot: startNanobot,
};

export async function whatsapp(): Promise<void> {
  header('process', 'RSS linked MB', 'RSS at the last message MB', 'at rest MB', 'CPU ms/message');
  for (const [name, startProcess] of Object.entries(PROCESSES)) {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startWhatsAppServer());
    const model = stack.use(await startLlmServer({ record: false, respond: answer }));
    const world = { server, model, phone: await server.phone(), stack };
    const subject = await startProcess(world);
    await world.phone.online(START_TIMEOUT_MS);
    await pause(SETTLE_MS);
    const linkedMb = subject.rssMb();
    const cpuBefore = subject.cpuMs();
    await converse(world);
    const perMessage = (subject.cpuMs() - cpuBefore) / MESSAGES;
    const loadedMb = subject.rssMb();
    await pause(SETTLE_MS);
    const figures = [linkedMb, loadedMb, subject.rssMb(), perMessage];
    row(name, ...figures.map(figure));
  }
}

const answer = ({ lastUserText }: { readonly lastUserText: string }) => ({
  chunks: [nonceAnswer(lastUserText)],
});

/** A few people at once, each with the next message after the last one was answered. */
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

async function startBare({ server, model, phone, stack }: World): Promise<Subject> {
  const subject = stack.use(
    start(['bench/bare-whatsapp-bot.ts'], {
      BENCH_SOCKET_URL: server.url,
      BENCH_MODEL_BASE: model.openaiBase,
    }),
  );
  await scan(subject, phone);
  return subject;
}

async function startAccount({ server, phone, stack }: World): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const subject = stack.use(
    start([...nodeFlags(ROOT), 'bench/whatsapp-account.ts'], {
      BENCH_SOCKET_URL: server.url,
      BENCH_FOLDER: folder,
    }),
  );
  await scan(subject, phone);
  return subject;
}

async function scan({ child }: Subject, phone: Phone): Promise<void> {
  const qr = new Promise<string>((resolve) => {
    child.on('message', (message) => resolve(String(Reflect.get(Object(message), 'qr'))));
  });
  await phone.scan(await qr);
}

async function startNanobot({ server, model, phone, stack }: World): Promise<Subject> {
  const whatsapp = { enabled: true, socketUrl: server.url, allowFrom: ['*'], pacing: UNPACED };
  const folder = process.env['NANOBOT_TEST_PACKAGE'] ?? ROOT;
  const program = stack.use(
    await configured({ name: 'nanobot', folder, quietMs: 0, model, channels: { whatsapp } }),
  );
  const subject = stack.use(program.start());
  for await (const step of loginSteps(await gatewayIn(program.home), {})) {
    if (step.kind === 'show_qr') await phone.scan(step.qr);
  }
  return subject;
}

/** The gateway of this home and the parameters of its API, once its channel can be linked. */
async function gatewayIn(home: string): Promise<Parameters<typeof loginSteps>[0]> {
  for (const until = Date.now() + START_TIMEOUT_MS; Date.now() < until; await pause(50)) {
    const text = await readFile(join(home, 'gateway.json'), 'utf8').catch(() => '{}');
    const { address } = JSON.parse(text);
    if (typeof address !== 'string') continue;
    const token = (await readFile(join(home, 'gateway-token'), 'utf8')).trim();
    const credentials = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${address}/api/v1/setup`, { headers: credentials });
    const canLogIn = z.object({ name: z.literal('whatsapp'), canLogIn: z.literal(true) });
    const { channels } = z.object({ channels: z.array(z.unknown()) }).parse(await answer.json());
    if (channels.some((channel) => canLogIn.safeParse(channel).success)) {
      return { address, credentials };
    }
  }
  throw new Error(`no gateway in ${home} that links WhatsApp`);
}
