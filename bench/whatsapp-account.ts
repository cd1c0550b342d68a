// One linked WhatsApp account by itself: our channel on the real store, answering every message
// with a fixed sentence, without agent, model or HTTP. Sends its parent the QR text by IPC.

import { join } from 'node:path';
import type { ChannelHost } from '../src/channels/channel.ts';
import { createWhatsAppChannel } from '../src/channels/whatsapp/whatsapp.ts';
import type { InboundEntry } from '../src/kernel/bus/bus.ts';
import { openEmbeddedStore } from '../src/kernel/bus/store/embedded.ts';
import { configSchema } from '../src/kernel/config/config.ts';
import { openMediaFiles } from '../src/kernel/media/files.ts';
import { messageId } from '../src/kernel/message/ids.ts';
import { silentLogger } from '../src/lib/logger.ts';
import { systemClock } from '../src/lib/time/clock.ts';
import { nonceAnswer, UNPACED } from './whatsapp-load.ts';

const { BENCH_SOCKET_URL = '', BENCH_FOLDER = '' } = process.env;
const whatsapp = { enabled: true, socketUrl: BENCH_SOCKET_URL, allowFrom: ['*'], pacing: UNPACED };
const config = configSchema.parse({ channels: { whatsapp } }).channels.whatsapp;
const clock = systemClock;
const path = join(BENCH_FOLDER, 'state.db');
const store = await openEmbeddedStore({ path, clock, log: silentLogger, inBackground: true });
const media = await openMediaFiles({
  folder: join(BENCH_FOLDER, 'media'),
  clock,
  maxBytes: () => 1_000_000_000,
  needed: async () => new Set(),
});
const stopping = new AbortController();
process.on('SIGTERM', () => stopping.abort());

const channel = createWhatsAppChannel(config, {
  random: Math.random,
  allowFrom: () => config.allowFrom,
});

async function reply({ message }: InboundEntry) {
  const answer = {
    id: messageId(`${message.id}/0`),
    chat: message.chat,
    replyTo: message.id,
    markdown: nonceAnswer(message.text),
  };
  await channel.send(answer, {
    signal: stopping.signal,
    attempt: 1,
    textAt: 0,
    sentParts: [],
    repeatsUnknown: false,
    requestBegins: async () => undefined,
    partSent: async () => undefined,
  });
}

const host: ChannelHost = {
  receive: async (batch) => void batch.forEach((entry) => void reply(entry)),
  cursor: async () => undefined,
  bounced: async () => 'not sent',
  isUnknownSender: async () => false,
  isTrusted: async () => false,
  answers: async () => true,
  report: () => undefined,
  alert: () => undefined,
  tell: () => undefined,
  closing: stopping.signal,
  state: store.scope('channel:whatsapp:default'),
  media,
  clock,
  log: silentLogger,
};
const running = channel.run(host, stopping.signal);
for await (const step of channel.login?.begin({}, stopping.signal) ?? []) {
  if (step.kind === 'show_qr') process.send?.({ qr: step.qr });
}
await running;
await store[Symbol.asyncDispose]();
process.disconnect();
