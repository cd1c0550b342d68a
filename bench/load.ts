// People who write to a bot, and what their waiting times were. Times are taken where people are:
// at the Bot API server, from the message offered to the reply standing in the chat.

import type { Peers } from './peers.ts';
import type { Subject } from './subject.ts';

export type LoadResult = {
  readonly turns: number;
  /** Added by the bot: waiting time minus the model server's own. */
  readonly addedMs: { readonly p50: number; readonly p95: number; readonly p99: number };
  readonly cpuMsPerTurn: number;
  readonly turnsPerSecond: number;
};

export type LoadOptions = {
  readonly chats: number;
  readonly turns: number;
  /** Messages a second over all chats; undefined = every chat at once, as fast as answers come. */
  readonly ratePerSecond?: number;
  readonly modelMs: number;
};

const FIRST_CHAT_ID = 10_000;

export const nowMs = () => performance.timeOrigin + performance.now();

export async function runLoad(
  subject: Subject,
  peers: Peers,
  options: LoadOptions,
): Promise<LoadResult> {
  const waits: number[] = [];
  const cpuBefore = subject.cpuMs();
  const startedAt = nowMs();
  const lanes = Array.from({ length: options.chats }, (_, index) => FIRST_CHAT_ID + index);
  const perChat = Math.ceil(options.turns / options.chats);
  await Promise.all(
    lanes.map(async (chatId, index) => {
      for (let turn = 0; turn < perChat; turn += 1) {
        await paced(startedAt, turn * options.chats + index, options.ratePerSecond);
        waits.push((await oneTurn(peers, chatId)) - options.modelMs);
      }
    }),
  );
  const turns = perChat * options.chats;
  return {
    turns,
    addedMs: percentiles(waits),
    cpuMsPerTurn: (subject.cpuMs() - cpuBefore) / turns,
    turnsPerSecond: turns / ((nowMs() - startedAt) / 1000),
  };
}

/** One question; resolves with the milliseconds until its answer stood in the chat. */
export async function oneTurn(peers: Peers, chatId: number): Promise<number> {
  const nonce = `nonce-${Math.random().toString(36).slice(2)}`;
  const answer = peers.answerIn(chatId, nonce);
  const offeredAt = nowMs();
  peers.telegram.say(chatId, `Please repeat ${nonce}`);
  return (await answer) - offeredAt;
}

async function paced(startedAt: number, index: number, ratePerSecond: number | undefined) {
  if (ratePerSecond === undefined) return;
  const waitMs = startedAt + (index * 1000) / ratePerSecond - nowMs();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
}

export function percentiles(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
