// The simulated services both bots talk to, on loopback in the benchmark's own process.

import { type BotApi, startBotApi } from '../test/support/bot-api.ts';
import {
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  startLlmServer,
} from '../test/support/llm-server.ts';

export interface Peers extends AsyncDisposable {
  readonly telegram: BotApi;
  readonly model: LlmServer;
  /** The time at which an answer with this text stood in the chat, epoch milliseconds. */
  answerIn(chatId: number, nonce: string): Promise<number>;
}

type Waiter = { readonly nonce: string; readonly resolve: (at: number) => void };

const ANSWER_TIMEOUT_MS = 120_000;

/** A short answer in as many pieces as a real model streams it. */
function answer({ lastUserText }: LlmRequest): LlmReply {
  const nonce = /\bnonce-\w+/.exec(lastUserText)?.[0] ?? 'nothing to repeat';
  const words = `You asked me to repeat ${nonce} and that is what this short sentence does.`;
  return { chunks: words.match(/\S+\s*/g) ?? [] };
}

export async function startPeers(modelMs: number): Promise<Peers> {
  const waiters = new Map<number, Waiter>();
  const telegram = await startBotApi({
    onMessage(chatId, message) {
      const waiter = waiters.get(chatId);
      if (waiter === undefined || message.from !== 'bot') return;
      if (!message.text.includes(waiter.nonce)) return;
      waiters.delete(chatId);
      waiter.resolve(message.changedAt);
    },
  });
  const model = await startLlmServer({ latencyMs: modelMs, record: false, respond: answer });
  return {
    telegram,
    model,
    answerIn: (chatId, nonce) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no answer in chat ${chatId} within ${ANSWER_TIMEOUT_MS} ms`)),
          ANSWER_TIMEOUT_MS,
        );
        waiters.set(chatId, {
          nonce,
          resolve: (at) => {
            clearTimeout(timer);
            resolve(at);
          },
        });
      }),
    async [Symbol.asyncDispose]() {
      await telegram[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}
