// The baseline for WhatsApp: Baileys as in its manual, keys in memory, one model call per message,
// no storage, order or retries. Sends its parent the QR text by IPC.

import { makeWASocket } from '@whiskeysockets/baileys';
import OpenAI from 'openai';
import { pino } from 'pino';
import { memoryAuth } from '../test/support/whatsapp-server/baileys-client.ts';

const { BENCH_SOCKET_URL = '', BENCH_MODEL_BASE = '' } = process.env;
const model = new OpenAI({ apiKey: 'bench-key', baseURL: BENCH_MODEL_BASE });
const auth = memoryAuth();
for (const method of ['log', 'info', 'warn', 'error'] as const) console[method] = () => undefined;

async function answer(text: string): Promise<string> {
  const stream = await model.chat.completions.create({
    model: 'sim-1',
    stream: true,
    messages: [{ role: 'user', content: text }],
  });
  let result = '';
  for await (const chunk of stream) result += chunk.choices[0]?.delta.content ?? '';
  return result;
}

function connect() {
  const socket = makeWASocket({
    auth,
    logger: pino({ level: 'silent' }),
    waWebSocketUrl: BENCH_SOCKET_URL,
    markOnlineOnConnect: false,
    syncFullHistory: false,
  });
  socket.ev.on('creds.update', (update) => void Object.assign(auth.creds, update));
  socket.ev.on('connection.update', ({ connection, qr }) => {
    if (qr !== undefined) process.send?.({ qr });
    if (connection === 'close') connect();
  });
  socket.ev.on('messages.upsert', async ({ messages }) => {
    for (const { key, message } of messages) {
      const text = message?.conversation ?? message?.extendedTextMessage?.text;
      if (key.fromMe || !text || !key.remoteJid) continue;
      await socket.sendMessage(key.remoteJid, { text: await answer(text), linkPreview: null });
    }
  });
}

connect();
