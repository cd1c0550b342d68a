// Takes Lark's events in: each is stored before its receipt goes back, in order within a chat. Lark repeats
// one that is refused after 15 s, 5 min, 1 h and 6 h. Lark takes only answers in a thread, so one message of
// each thread is remembered.
// open.feishu.cn/document/server-docs/event-subscription-guide/overview

import { EventDispatcher } from '@larksuiteoapi/node-sdk';
import { howToList, plain } from '../../kernel/access/group-names.ts';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { toastOf } from '../../kernel/message/choices.ts';
import { BusFullError } from '../../kernel/message/errors.ts';
import type { ThreadId } from '../../kernel/message/ids.ts';
import { createLanes, RecentMap } from '../../lib/async.ts';
import { textOf } from '../../lib/json/json.ts';
import type { ChannelHost, ShowOutcome } from '../channel.ts';
import { SILENT_SDK } from './api.ts';
import {
  createRecentMessages,
  type InboundContext,
  toEntry,
  toPress,
  toReaction,
  toWithdrawal,
} from './inbound.ts';
import { at, isId, LARK, larkMessageId } from './rules/content.ts';

type EventDeps = {
  readonly host: ChannelHost;
  readonly threads: Threads;
  readonly groups: readonly string[];
  context(): InboundContext;
};

export type Events = ReturnType<typeof createEvents>;

/** What a person sees who pressed; the whole of it comes as a message. */
const toastWith = (content: string) => ({ toast: { type: 'info', content } });
const TAKEN = 'Taken';
const RETRY_MS = 15_000;

export function createEvents({ host, threads, groups, context }: EventDeps) {
  const lanes = createLanes();
  const recent = createRecentMessages();
  const running = new Set<Promise<unknown>>();

  async function store(
    kind: string,
    entry: InboundEntry | undefined,
    pressed?: ShowOutcome,
  ): Promise<boolean> {
    if (entry === undefined) {
      host.log.info('lark event left out', { kind });
      return false;
    }
    try {
      await host.receive([entry], pressed === undefined ? {} : { pressed });
      return true;
    } catch (error) {
      if (error instanceof BusFullError) {
        const reason = 'the queue is full; Lark sends again what came meanwhile';
        host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + RETRY_MS });
      }
      throw error;
    }
  }

  /** One chat after the other; the SDK hands over events side by side. */
  const inLane = <T>(lane: unknown, task: () => Promise<T>): Promise<T> => {
    const done = lanes.run(textOf(lane) ?? '', task);
    running.add(done);
    const forget = () => void running.delete(done);
    done.then(forget, forget);
    return done;
  };

  const handlers: Readonly<Record<string, (event: unknown) => Promise<unknown>>> = {
    'im.message.receive_v1': (event) =>
      inLane(at(event, 'message', 'chat_id'), async () => {
        const entry = await toEntry(event, context());
        if (entry?.kind === 'queue') {
          recent.note(entry.message);
          await threads.note(entry.message.chat.thread, larkMessageId(entry.message.id));
        }
        await store('message', entry);
      }),
    'im.message.recalled_v1': (event) =>
      inLane(at(event, 'chat_id'), async () => {
        await store('recall', toWithdrawal(event, recent, host.clock.now()));
      }),
    'card.action.trigger': (event) =>
      inLane(at(event, 'context', 'open_chat_id'), async () => {
        let words = TAKEN;
        const show: ShowOutcome = (_press, markdown) => {
          words = toastOf(markdown) || TAKEN;
        };
        return (await store('press', await toPress(event, context()), show))
          ? toastWith(words)
          : {};
      }),
    'im.message.reaction.created_v1': (event) =>
      inLane(at(event, 'message_id'), async () => {
        await store('reaction', await toReaction(event, false, context()));
      }),
    'im.message.reaction.deleted_v1': (event) =>
      inLane(at(event, 'message_id'), async () => {
        await store('reaction', await toReaction(event, true, context()));
      }),
    'im.chat.member.bot.added_v1': async (event) => {
      const chat = textOf(at(event, 'chat_id'));
      if (!isId(chat) || groups.includes(chat)) return;
      const title = plain(textOf(at(event, 'name')) ?? 'a group');
      const where = `the Lark group ${title} (${chat})`;
      host.tell(`Somebody put me into ${where}. I say nothing there. ${howToList(LARK, chat)}`);
    },
    // Often subscribed along with the others, and nothing to us.
    'im.message.message_read_v1': async () => undefined,
    'im.chat.access_event.bot_p2p_chat_entered_v1': async () => undefined,
  };

  return {
    dispatcher: new EventDispatcher({ logger: SILENT_SDK }).register({ ...handlers }),
    /** Resolves when nothing is being stored any more. */
    settled: async () => void (await Promise.allSettled(running)),
  };
}

// Where a thread can be written into: Lark takes only answers to a message of it, so one of each thread is
// remembered, once.

export type Threads = ReturnType<typeof createThreads>;

const MAX_KNOWN = 1000;
const keyOf = (thread: ThreadId) => `thread:${thread}`;

export function createThreads(state: () => KeyValueStore | undefined) {
  const known = new RecentMap<ThreadId, string>(MAX_KNOWN);
  /** A message to answer; undefined where none is known. */
  async function anchor(thread: ThreadId): Promise<string | undefined> {
    const kept = known.get(thread) ?? (await state()?.get(keyOf(thread)));
    if (!isId(kept)) return undefined;
    known.set(thread, kept);
    return kept;
  }

  return {
    anchor,
    async note(thread: ThreadId | undefined, message: string | undefined): Promise<void> {
      if (thread === undefined || message === undefined) return;
      if ((await anchor(thread)) !== undefined) return;
      await state()?.set(keyOf(thread), message);
      known.set(thread, message);
    },
  };
}
