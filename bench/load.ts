// The load on several bots in turn. All bots run at once; while one is under load the others idle,
// and a run alternates between them in blocks of some seconds, so that a machine with varying speed
// affects all equally.

import { setTimeout as delay } from 'node:timers/promises';
import type { Bot } from './entrants.ts';

export type Load = {
  readonly chats: number;
  /** In each chat one after the other. */
  readonly turnsPerChat: number;
  readonly blocks: number;
  /** Every block continues the chats of the first; absent: its chats are new. */
  readonly keepsChats?: boolean;
};

export type Block = {
  /** Per turn, the time that the bot added to the model's own. */
  readonly addedMs: readonly number[];
  /** Until the last reply. */
  readonly spanMs: number;
  /** Of all threads, including work deferred until the last reply. */
  readonly cpuMs: number;
};

const FIRST_CHAT = 10_000;
const WARM_UP_TURNS = 5;
const PUT_OFF_MS = 1000;

export async function warmUp({ peers }: Bot): Promise<void> {
  for (let turn = 0; turn < WARM_UP_TURNS; turn += 1) await peers.ask(1 + turn);
}

export async function inTurn(
  bots: readonly Bot[],
  load: Load,
): Promise<ReadonlyMap<Bot, readonly Block[]>> {
  const blocks = new Map(bots.map((bot): [Bot, Block[]] => [bot, []]));
  for (const bot of bots) await warmUp(bot);
  for (let number = 0; number < load.blocks; number += 1) {
    const firstChat = FIRST_CHAT + (load.keepsChats === true ? 0 : number * load.chats);
    for (const [bot, done] of blocks) done.push(await oneBlock(bot, load, firstChat));
  }
  return blocks;
}

export async function oneBlock(
  { peers, subject }: Bot,
  { chats, turnsPerChat }: Pick<Load, 'chats' | 'turnsPerChat'>,
  firstChat = FIRST_CHAT,
): Promise<Block> {
  const addedMs: number[] = [];
  async function chat(id: number) {
    for (let turn = 0; turn < turnsPerChat; turn += 1) addedMs.push(await peers.ask(id));
  }
  const cpuBefore = subject.cpuMs();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: chats }, (_, index) => chat(firstChat + index)));
  const spanMs = performance.now() - startedAt;
  await delay(PUT_OFF_MS);
  return { addedMs, spanMs, cpuMs: subject.cpuMs() - cpuBefore };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (values: readonly number[]) => percentile(values, 0.5);
