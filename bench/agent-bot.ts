// The second baseline: the bare bot with what any agent must send. It uses the system prompt and
// the tool schemas of a recorded request of nanobot, keeps each chat's history in memory, and shows
// a long answer as one draft. Like the bare bot it has no storage, no order and no retries.

import { readFileSync } from 'node:fs';
import { Bot } from 'grammy';
import { OpenAI } from 'openai';

type Request = OpenAI.ChatCompletionCreateParamsStreaming;
type Message = Request['messages'][number];

const DRAFT_EVERY_MS = 1000;

const { BENCH_TOKEN = '', BENCH_API_ROOT = '', BENCH_MODEL_BASE = '' } = process.env;
const { BENCH_REQUEST = '' } = process.env;

const bot = new Bot(BENCH_TOKEN, { client: { apiRoot: BENCH_API_ROOT } });
const model = new OpenAI({ apiKey: 'bench', baseURL: BENCH_MODEL_BASE });
const { messages, tools = [] }: Request = JSON.parse(readFileSync(BENCH_REQUEST, 'utf8'));
const system = messages.filter(({ role }) => role === 'system');
const histories = new Map<number, Message[]>();

async function answer(chat: number, text: string): Promise<void> {
  const history = histories.get(chat) ?? [];
  histories.set(chat, history);
  history.push({ role: 'user', content: text });
  // The SDK's helper assembles tool calls too, which every agent needs.
  const stream = model.chat.completions.stream({
    model: 'sim-1',
    stream_options: { include_usage: true },
    messages: [...system, ...history],
    tools,
  });
  const draft = createDraft(chat);
  let result = '';
  for await (const chunk of stream) {
    result += chunk.choices[0]?.delta.content ?? '';
    draft.grow(result);
  }
  history.push({ role: 'assistant', content: result });
  await draft.finish(result);
}

/**
 * One message that is sent when an answer takes longer than a second, and edited at most once a
 * second.
 */
function createDraft(chat: number) {
  let shownAt = performance.now();
  let shown = '';
  let sent: Promise<number> | undefined;
  function show(text: string) {
    if (text === shown) return;
    shown = text;
    shownAt = performance.now();
    sent = (sent ?? Promise.resolve(undefined)).then(async (id) => {
      if (id === undefined) return (await bot.api.sendMessage(chat, text)).message_id;
      await bot.api.editMessageText(chat, id, text);
      return id;
    });
  }
  return {
    grow(text: string) {
      if (performance.now() - shownAt >= DRAFT_EVERY_MS) show(text);
    },
    async finish(text: string) {
      show(text);
      await sent;
    },
  };
}

// Not awaited: chats are answered in parallel.
bot.on('message:text', ({ chat, message }) => void answer(chat.id, message.text));

process.once('SIGTERM', () => process.exit());
await bot.start();
