// Watches per session whether a call begins as the one before it did, as prompt caches need it, and
// says in the log which part broke that. What is kept is a few hashes for each of the newest sessions.

import type { Rights } from '../kernel/access/rights.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { ModelMessage, TokenUsage } from '../kernel/message/transcript.ts';
import type { Logger } from '../lib/logger.ts';
import type { ToolSpec } from '../providers/provider.ts';
import { type CallPrints, CONVERSATION, firstChange, type NamedPrint } from './cache-watch.ts';
import { type Prints, printOf } from './prints.ts';
import { MEMORY_TITLE, type PromptSection } from './rules/prompt.ts';

export type WatchedCall = {
  readonly session: SessionKey;
  /** That answered; another one has another cache. */
  readonly model: string;
  /** Others are offered other tools. */
  readonly rights: Rights;
  readonly tools: readonly ToolSpec[];
  readonly system: readonly PromptSection[];
  readonly messages: readonly ModelMessage[];
  readonly usage: TokenUsage | undefined;
};

export interface CacheAlarm {
  /** After a call that was answered. */
  called(call: WatchedCall, log: Logger): void;
}

const MAX_SESSIONS = 1000;
const MAX_REPORTED = 1000;

type Seen = CallPrints & { readonly cache: string };

export function createCacheAlarm(prints: Prints): CacheAlarm {
  const sessions = new Map<SessionKey, Seen>();
  /** One edit of a file changes the prompt of every session, and is said once. */
  const reported = new Set<string>();

  /** One print for each tool would tell no more than which one: the list is sent as one. */
  const partsOf = ({ tools, system }: WatchedCall): readonly NamedPrint[] => [
    { name: 'tools', print: printOf(tools.map(prints.ofTool)) },
    ...system.filter(({ stable }) => stable).flatMap(prints.ofParts),
  ];

  function isNews({ name, print }: NamedPrint): boolean {
    const change = `${name} ${print}`;
    if (name === CONVERSATION) return true;
    if (reported.has(change)) return false;
    if (reported.size >= MAX_REPORTED) reported.clear();
    reported.add(change);
    return true;
  }

  return {
    called(call, log) {
      const { session, model, rights, messages, usage } = call;
      const cache = printOf([model, rights]);
      const parts = partsOf(call);
      const before = sessions.get(session);
      sessions.delete(session);
      // The last message still grows: notes are put into it, and others join it.
      sessions.set(session, { cache, parts, thread: threadOf(messages, messages.length - 1) });
      const [oldest] = sessions.keys();
      if (sessions.size > MAX_SESSIONS && oldest !== undefined) sessions.delete(oldest);
      if (before?.cache !== cache) return;
      const count = before.thread.messages;
      const place = messages.length < count ? undefined : threadOf(messages, count);
      const change = firstChange(before, parts, place);
      if (change === undefined || !isNews(change)) return;
      const { cachedTokens, inputTokens } = usage ?? {};
      const fields = { section: change.name, cachedTokens, inputTokens };
      // The agent itself writes there: that is no fault.
      if (change.name === MEMORY_TITLE) log.info('prompt cache begun anew', fields);
      else log.warn('prompt cache broken', fields);
    },
  };
}

function threadOf(messages: readonly ModelMessage[], count: number): CallPrints['thread'] {
  const text = JSON.stringify(messages.slice(0, Math.max(0, count)));
  return { messages: Math.max(0, count), chars: text.length, print: printOf(text) };
}
