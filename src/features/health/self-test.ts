// Sends a marked message through the real channels, measures each hop and retracts the message. It
// bypasses message bus, agent and transcripts: it starts no turn and gets no answer.

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Channel, ChannelStatus } from '../../channels/channel.ts';
import type { ConfiguredChannels } from '../../channels/configured-channels.ts';
import { chatsOf } from '../../kernel/access/person.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { Refusal, type RouteHandlers, valid } from '../../kernel/http-routes.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import {
  type AccountName,
  accountName,
  accountNameOf,
  accountOf,
  chatId,
  messageId,
} from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';

/** Deadline for one channel. */
export const SELF_TEST_MS = 60_000;
/** A channel without activity for this long counts as not receiving. */
const STALLED_MS = 150_000;
/** Time for retracting the test message. */
const CLEAR_MS = 15_000;
const NONCE_BYTES = 8;

export type TestedChannel = {
  readonly name: string;
  readonly status: ChannelStatus | { readonly kind: 'off' };
};

type SelfTestStep =
  /**
   * `ms`: duration of the hop; for `receiving`: time since the channel last heard from its
   * platform.
   */
  | { readonly kind: 'hop'; readonly channel: string; readonly hop: string; readonly ms: number }
  | { readonly kind: 'passed'; readonly channel: string }
  | {
      readonly kind: 'failed';
      readonly channel: string;
      readonly reason: string;
      readonly remedy: string;
    };

type SelfTestDeps = Pick<Kernel, 'clock' | 'log'> & {
  channels(): readonly TestedChannel[];
  channel(name: AccountName): Channel | undefined;
  /** The chat with an owner on that account. */
  ownerChat(account: AccountName): Promise<ChatRef | undefined>;
  randomBytes(size: number): Uint8Array;
};

class SelfTestFailure extends NanobotError {
  override readonly name = 'SelfTestFailure';
  readonly remedy: string;
  constructor(reason: string, remedy: string) {
    super('self_test', reason);
    this.remedy = remedy;
  }
}

/** Tests every enabled channel, one after the other. */
export async function* selfTest(
  deps: SelfTestDeps,
  signal: AbortSignal,
): AsyncGenerator<SelfTestStep, void, void> {
  for (const tested of deps.channels()) {
    if (tested.status.kind !== 'off') yield* testChannel(tested, deps, signal);
    if (signal.aborted) return;
  }
}

async function* testChannel(
  { name, status }: TestedChannel,
  deps: SelfTestDeps,
  signal: AbortSignal,
): AsyncGenerator<SelfTestStep, void, void> {
  const { clock, log } = deps;
  const over = new AbortController();
  const deadline = new AbortController();
  const ended = AbortSignal.any([signal, deadline.signal]);
  const waiting = clock.sleep(SELF_TEST_MS, over.signal).then(
    () => deadline.abort(),
    () => undefined,
  );
  let hops: AsyncGenerator<string, void, void> | undefined;
  try {
    const idleMs = receivingMs(name, status, clock.now());
    yield { kind: 'hop', channel: name, hop: 'receiving', ms: idleMs };
    let since = clock.monotonic();
    hops = hopsOf(name, deps, ended);
    for (;;) {
      const next = await orAborted(hops.next(), ended);
      if (next.done === true) break;
      const now = clock.monotonic();
      yield { kind: 'hop', channel: name, hop: next.value, ms: Math.round(now - since) };
      since = now;
    }
    yield { kind: 'passed', channel: name };
  } catch (error) {
    if (signal.aborted) return;
    log.warn('self-test failed', { channel: name, error });
    yield { kind: 'failed', channel: name, ...wordsOf(error, name, deadline.signal.aborted) };
  } finally {
    over.abort();
    // Not awaited: a channel that hangs retracts its message whenever it continues.
    hops
      ?.return()
      .catch((error) => log.warn('self-test message not removed', { channel: name, error }));
    await waiting;
  }
}

/** @throws SelfTestFailure where the channel does not receive */
function receivingMs(name: string, status: TestedChannel['status'], now: number): number {
  const restart = t`Restart it: nanobot channels restart ${name}`;
  switch (status.kind) {
    case 'running': {
      const idleMs = Math.max(0, now - status.activeAt);
      if (idleMs <= STALLED_MS) return idleMs;
      const idle = t`it has had no contact with its platform for ${Math.round(idleMs / 1000)} s`;
      throw new SelfTestFailure(idle, restart);
    }
    case 'stopped':
      throw new SelfTestFailure(status.reason, status.remedy);
    case 'degraded':
      throw new SelfTestFailure(status.reason, t`It retries by itself. ${restart}`);
    case 'elsewhere':
      throw new SelfTestFailure(
        t`another process runs it`,
        t`Test it there; nanobot nodes shows where.`,
      );
    default:
      throw new SelfTestFailure(t`it has not started yet`, t`Try again in a moment.`);
  }
}

async function* hopsOf(
  name: string,
  deps: SelfTestDeps,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const channel = deps.channel(accountName(accountOf(name)));
  if (channel === undefined)
    throw new SelfTestFailure(t`it does not run`, t`Try again in a moment.`);
  const nonce = Buffer.from(deps.randomBytes(NONCE_BYTES)).toString('hex');
  if (channel.selfTest !== undefined) yield* channel.selfTest.run(nonce, signal);
  else yield* throughOwnerChat(channel, nonce, deps, signal);
}

async function* throughOwnerChat(
  channel: Channel,
  nonce: string,
  { ownerChat, clock }: SelfTestDeps,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  const chat = await ownerChat(accountNameOf(channel));
  if (chat === undefined) {
    const remedy = t`Send the agent one message there, as its owner.`;
    throw new SelfTestFailure(t`no chat with an owner is known there`, remedy);
  }
  const id = messageId(`self-test/${nonce}`);
  const markdown = t`Self-test ${nonce}: this message deletes itself.`;
  const { nativeIds } = await channel.send(
    { id, chat, markdown },
    {
      attempt: 1,
      textAt: clock.now(),
      repeatsUnknown: false,
      sentParts: [],
      requestBegins: () => Promise.resolve(),
      partSent: () => Promise.resolve(),
      signal,
    },
  );
  if (nativeIds.length === 0) throw new SelfTestFailure(t`nothing was sent`, t`See the log.`);
  const { retracting } = channel;
  let isThere = retracting !== undefined;
  try {
    yield 'sent';
    if (retracting === undefined) return;
    await retracting.retract(chat, nativeIds, signal);
    isThere = false;
    yield 'removed';
  } finally {
    // The message has to be retracted even if the deadline passed in between.
    if (isThere) await inOwnTime(clock, (own) => retracting?.retract(chat, nativeIds, own));
  }
}

/** Uses a signal of its own, because the test's may have ended. */
async function inOwnTime(
  clock: Clock,
  task: (signal: AbortSignal) => Promise<void> | undefined,
): Promise<void> {
  const late = new AbortController();
  using _timer = clock.timer(CLEAR_MS, () => late.abort());
  await task(late.signal);
}

function wordsOf(error: unknown, name: string, isLate: boolean) {
  if (error instanceof SelfTestFailure) return { reason: error.message, remedy: error.remedy };
  const remedy = t`See: nanobot doctor, and the log. Restart it: nanobot channels restart ${name}`;
  if (isLate) return { reason: t`it took longer than ${SELF_TEST_MS / 1000} s`, remedy };
  const isOurs = error instanceof NanobotError;
  return { reason: isOurs ? error.message : t`something went wrong in the gateway`, remedy };
}

// The self-test over HTTP, one at a time, through the running channels to the chats of an owner.
//
// POST /api/selftest {}; server-sent events, one per step: `started`, then hops and verdicts

export function selfTestRoutes(
  { people, channels: running, clock, log }: Kernel,
  configured: Pick<ConfiguredChannels, 'channels'>,
) {
  async function ownerChat(name: AccountName): Promise<ChatRef | undefined> {
    const owners = (await people.persons.list()).filter(({ role }) => role === 'owner');
    const written = owners.flatMap(chatsOf).find((chat) => accountName(chat) === name);
    if (written !== undefined) return written;
    const { approved } = await people.pairing.list();
    const at = accountOf(name);
    const paired = approved.find(({ role, channel }) => role === 'owner' && channel === at.channel);
    return paired?.chat === undefined ? undefined : { ...at, chat: chatId(paired.chat) };
  }
  const channels = () => configured.channels();
  const deps = { channels, channel: running.get, ownerChat, clock, log, randomBytes };
  let isUnderWay = false;

  async function* steps(signal: AbortSignal): AsyncGenerator<object, void, void> {
    isUnderWay = true;
    try {
      yield { kind: 'started' };
      yield* selfTest(deps, signal);
    } finally {
      isUnderWay = false;
    }
  }

  return {
    'POST /api/selftest'({ body }) {
      valid(z.strictObject({}), body);
      if (isUnderWay) throw new Refusal(409, 'busy', t`A self-test is already running.`);
      return { events: steps };
    },
  } satisfies RouteHandlers;
}
