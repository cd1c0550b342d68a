// The first baseline: a minimal Telegram bot. No storage, no order, no retries; it calls the same
// model server with the same SDK and answers.

import { Bot } from 'grammy';
import { OpenAI } from 'openai';

const { BENCH_TOKEN = '', BENCH_API_ROOT = '', BENCH_MODEL_BASE = '' } = process.env;

const bot = new Bot(BENCH_TOKEN, { client: { apiRoot: BENCH_API_ROOT } });
const model = new OpenAI({ apiKey: 'bench', baseURL: BENCH_MODEL_BASE });

async function answer(text: string): Promise<string> {
  const stream = await model.chat.completions.create({
    model: 'sim-1',
    stream: true,
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: text },
    ],
  });
  let result = '';
  for await (const chunk of stream) result += chunk.choices[0]?.delta.content ?? '';
  return result;
}

bot.on('message:text', (context) => {
  // Not awaited: chats are answered in parallel.
  void answer(context.message.text).then((text) => context.reply(text));
});

// A process that a signal ends does not write its compile cache.
process.once('SIGTERM', () => process.exit());
await bot.start();
