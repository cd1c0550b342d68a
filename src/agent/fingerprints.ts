// Fingerprints of what is sent to models. The request log uses them to store each text once, and
// the cache alarm uses them to detect a call that does not share the prefix of the previous one,
// which a provider's prompt cache requires.

import { hash } from 'node:crypto';
import type { Rights } from '../kernel/access/rights.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { ModelMessage, TokenUsage } from '../kernel/message/transcript.ts';
import type { RequestPiece } from '../kernel/sessions/rules/request-records.ts';
import type { RequestLog } from '../kernel/sessions/store.ts';
import { RecentMap, rememberedFor } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import type { ToolSpec } from '../providers/provider.ts';
import { MEMORY_TITLE, type PromptSection } from './rules/prompt.ts';

/** 96 bits: collisions do not occur by chance. */
const FINGERPRINT_BYTES = 12;

export function fingerprintOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // A slice of the whole text would keep the whole in memory.
  return hash('sha256', text, 'buffer').toString('base64url', 0, FINGERPRINT_BYTES);
}

export type Fingerprints = ReturnType<typeof createFingerprints>;

/** Computed once for each tool and each section of a prompt, which are immutable. */
export function createFingerprints() {
  return {
    /** The part of a tool that is sent to the model, JSON. */
    ofTool: rememberedFor(({ name, description, schema }: ToolSpec): RequestPiece => {
      const text = JSON.stringify({ name, description, schema });
      return { print: fingerprintOf(text), text, isCommon: true };
    }),
    /** One for each part of the section, in order. */
    ofParts: rememberedFor((section: PromptSection): readonly NamedFingerprint[] =>
      section.parts.map(({ name, text }) => ({ name, print: fingerprintOf(text) })),
    ),
  };
}

/** The request log with what a turn records in it. */
export type RequestNotes = {
  readonly requestLog: RequestLog;
  readonly fingerprints: Fingerprints;
  /** The settings of the turn, JSON. */
  readonly config: RequestPiece;
};

type NamedFingerprint = { readonly name: string; readonly print: string };

type CallFingerprints = {
  /**
   * In the order in which they are sent to providers: tools, then the stable parts of the prompt.
   */
  readonly parts: readonly NamedFingerprint[];
  /** Of the first `messages` messages, which the next call should begin with. */
  readonly thread: { readonly messages: number; readonly chars: number; readonly print: string };
};

const CONVERSATION = 'conversation';

/**
 * The first part that changed. `place`: the text at the place of the old thread in the new call;
 * undefined where the new one is shorter. A shorter conversation is intended: it was summarised,
 * trimmed or reset.
 */
function firstChange(
  before: CallFingerprints,
  parts: readonly NamedFingerprint[],
  place: { readonly chars: number; readonly print: string } | undefined,
): NamedFingerprint | undefined {
  for (let index = 0; index < Math.max(before.parts.length, parts.length); index += 1) {
    const [old, now] = [before.parts[index], parts[index]];
    if (old?.name === now?.name && old?.print === now?.print) continue;
    // Reports a removed or inserted part rather than the part that took its place.
    const isGone = old !== undefined && !parts.some(({ name }) => name === old.name);
    return isGone ? { name: old.name, print: '' } : (now ?? old);
  }
  if (place === undefined || place.chars < before.thread.chars) return undefined;
  if (place.print === before.thread.print) return undefined;
  return { name: CONVERSATION, print: place.print };
}

type WatchedCall = {
  readonly session: SessionKey;
  /** They determine the offered tools. */
  readonly rights: Rights;
  readonly tools: readonly ToolSpec[];
  readonly system: readonly PromptSection[];
  readonly messages: readonly ModelMessage[];
};

/** `model`: the one that answered; each has a cache of its own. */
type WatchedAnswer = { readonly model: string; readonly usage?: TokenUsage };

const MAX_SESSIONS = 1000;
const MAX_REPORTED = 1000;

export type CacheAlarm = ReturnType<typeof createCacheAlarm>;

/**
 * Logs which part of a session's call invalidated the prompt cache; keeps a few fingerprints per
 * session.
 */
export function createCacheAlarm(fingerprints: Fingerprints) {
  const sessions = new RecentMap<SessionKey, CallFingerprints & { readonly cache: string }>(
    MAX_SESSIONS,
  );
  /** An edited file changes the prompt of every session but is reported once. */
  const reported = new Set<string>();

  function isNews({ name, print }: NamedFingerprint): boolean {
    const change = `${name} ${print}`;
    if (name === CONVERSATION) return true;
    if (reported.has(change)) return false;
    if (reported.size >= MAX_REPORTED) reported.clear();
    reported.add(change);
    return true;
  }

  return {
    /** Takes the fingerprints of a call; returns what to call with its answer. */
    asked(call: WatchedCall, log: Logger): (answer: WatchedAnswer) => void {
      const { session, rights, tools, system, messages } = call;
      const parts = [
        // One fingerprint for the whole list, which is sent as one.
        {
          name: 'tools',
          print: fingerprintOf(tools.map((tool) => fingerprints.ofTool(tool).print)),
        },
        ...system.filter(({ stable }) => stable).flatMap(fingerprints.ofParts),
      ];
      const given = fingerprintOf(rights);
      const before = sessions.get(session);
      // The last message may still grow by notes and joined messages.
      const texts = messages.map(textIn);
      const thread = threadOf(texts, messages.length - 1);
      const count = before?.thread.messages ?? 0;
      const place = messages.length < count ? undefined : threadOf(texts, count);
      return ({ model, usage }) => {
        const cache = `${given} ${model}`;
        sessions.set(session, { cache, parts, thread });
        if (before?.cache !== cache) return;
        const change = firstChange(before, parts, place);
        if (change === undefined || !isNews(change)) return;
        const { cachedTokens, inputTokens } = usage ?? {};
        const fields = { section: change.name, cachedTokens, inputTokens };
        // The agent writes its memory itself, so this change is expected.
        if (change.name === MEMORY_TITLE) log.info('prompt cache started again', fields);
        else log.warn('prompt cache invalidated', fields);
      };
    },
  };
}

/** Most messages are a text alone, which need not be written as JSON. */
function textIn(message: ModelMessage): string {
  const { role, text } = message;
  const isPlain =
    (role === 'user' && message.images === undefined && message.note === undefined) ||
    (role === 'assistant' && message.toolCalls.length + message.thinking.length === 0);
  return isPlain ? `${role} ${text}` : JSON.stringify(message);
}

/** `texts`: of each message. */
function threadOf(texts: readonly string[], count: number): CallFingerprints['thread'] {
  const text = texts.slice(0, Math.max(0, count)).join();
  return { messages: Math.max(0, count), chars: text.length, print: fingerprintOf(text) };
}
