// The simulated services that a bot talks to, on loopback in the benchmark's own process, and the
// people who write to it. Times are measured from the people's side: at the Bot API server, from
// the offered message to the complete reply in the chat.

import { setTimeout as delay } from 'node:timers/promises';
import { type BotApi, startBotApi } from '../test/support/bot-api.ts';
import {
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  startLlmServer,
} from '../test/support/llm-server.ts';
import type { ScriptedCall } from '../test/support/llm-server-reply.ts';

/** Time of the model to its first token, and from there to its last. */
export type Pace = {
  readonly thinkMs: number;
  readonly streamMs: number;
  /** The tool that the model calls once before it answers. */
  readonly call?: () => ScriptedCall | false;
};

export const STREAMING: Pace = { thinkMs: 0, streamMs: 145 };
/** 790 ms in total. */
export const THINKING: Pace = { thinkMs: 645, streamMs: 145 };
export const AT_ONCE: Pace = { thinkMs: 0, streamMs: 0 };

export interface Peers extends AsyncDisposable {
  readonly telegram: BotApi;
  readonly model: LlmServer;
  modelCalls(): number;
  /** The body of the last request to the model. */
  lastRequest(): LlmRequest['body'] | undefined;
  /**
   * One question; resolves when its answer is in the chat, with the time that the bot added to the
   * model's.
   */
  ask(chatId: number): Promise<number>;
  /**
   * Resolves when a process that was started at this time has polled for messages, with the
   * milliseconds until then.
   */
  firstPoll(startedAt: number): Promise<number>;
}

type Waiter = { readonly nonce: string; readonly resolve: (at: number) => void };

const NONCE = /\bnonce-\w+/g;
const WORDS =
  'You asked me to repeat one word and that is all which this short sentence does: here it is'.split(
    ' ',
  );
const ANSWER_TIMEOUT_MS = 120_000;
const START_TIMEOUT_MS = 60_000;

export const nowMs = () => performance.timeOrigin + performance.now();

export async function startPeers(pace: Pace): Promise<Peers> {
  const waiters = new Map<number, Waiter>();
  const modelMs = new Map<string, number>();
  let calls = 0;
  let lastRequest: LlmRequest['body'] | undefined;
  const telegram = await startBotApi({
    onMessage(chatId, message) {
      const waiter = waiters.get(chatId);
      if (waiter === undefined || message.from !== 'bot') return;
      if (!message.text.includes(waiter.nonce)) return;
      waiters.delete(chatId);
      waiter.resolve(message.changedAt);
    },
  });
  /** Twenty tokens; the last is the requested word, so that a draft is not taken for the answer. */
  function respond({ lastUserText, body, toolResults, arrivedAt }: LlmRequest): LlmReply {
    calls += 1;
    lastRequest = body;
    const call = pace.call?.() ?? false;
    if (call !== false && toolResults.length === 0) return { toolCalls: [call] };
    // After a tool's result the question stands further up.
    const asked = toolResults.length > 0 ? JSON.stringify(body) : lastUserText;
    const nonce = asked.match(NONCE)?.at(-1) ?? 'nothing';
    const tokens = [...WORDS.map((word) => `${word} `), nonce];
    if (pace.thinkMs + pace.streamMs === 0) return { chunks: tokens };
    const chunks = tokens.flatMap((token, index) => {
      const share = (index + 1) / tokens.length;
      return [delay(pace.thinkMs + pace.streamMs * share), token];
    });
    const last = chunks.at(-2);
    if (last instanceof Promise) void last.then(() => modelMs.set(nonce, nowMs() - arrivedAt));
    return { chunks };
  }
  const model = await startLlmServer({ record: false, respond });

  function answerIn(chatId: number, nonce: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no answer in chat ${chatId} within ${ANSWER_TIMEOUT_MS} ms`)),
        ANSWER_TIMEOUT_MS,
      );
      const settle = (at: number) => {
        clearTimeout(timer);
        resolve(at);
      };
      waiters.set(chatId, { nonce, resolve: settle });
    });
  }

  return {
    telegram,
    model,
    modelCalls: () => calls,
    lastRequest: () => lastRequest,
    async ask(chatId) {
      const nonce = `nonce-${Math.random().toString(36).slice(2)}`;
      const answer = answerIn(chatId, nonce);
      const offeredAt = nowMs();
      telegram.say(chatId, `Please repeat ${nonce}`);
      const waitMs = (await answer) - offeredAt;
      const ownMs = modelMs.get(nonce) ?? 0;
      modelMs.delete(nonce);
      return waitMs - ownMs;
    },
    async firstPoll(startedAt) {
      const isPoll = () =>
        telegram.calls.find(({ method, at }) => method === 'getUpdates' && at > startedAt);
      return (await telegram.waitFor(isPoll, START_TIMEOUT_MS)).at - startedAt;
    },
    async [Symbol.asyncDispose]() {
      await telegram[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}
