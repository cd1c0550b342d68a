// What the request formats of all vendors share: merging messages by role and sealed reasoning that
// only its vendor can read.

import { joinedUsers } from '../agent/rules/thread-repair.ts';
import type { ModelMessage, ThinkingBlock } from '../kernel/message/transcript.ts';
import { fieldsOf, readJson } from '../lib/json/json.ts';

const SEPARATOR = ' ';

export const sealed = (model: string, signature: string) => `${model}${SEPARATOR}${signature}`;

/** The signature if this model gave it. */
export function unsealed(block: ThinkingBlock, model: string): string | undefined {
  const start = `${model}${SEPARATOR}`;
  return block.signature?.startsWith(start) === true
    ? block.signature.slice(start.length)
    : undefined;
}

// Makes a transcript fit for any wire: ids and arguments every vendor takes, no empty answers, no two
// user messages in a row. Pairing of calls and results is the agent's; here nothing is lost.

export type WireMessage = ModelMessage;

const SAFE_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const UNSAFE_CHARACTERS = /[^a-zA-Z0-9_-]/g;
const MAX_ID_CHARS = 40;

export function wireMessages(messages: readonly ModelMessage[]): readonly WireMessage[] {
  const ids = createSafeIds(messages);
  const out: WireMessage[] = [];
  for (const original of messages) {
    // Half a surrogate pair, left by a cut, is refused by vendors.
    const message = { ...original, text: original.text.toWellFormed() };
    const last = out.at(-1);
    if (message.role === 'user') {
      const { text, images, note } = message;
      if (text.trim() === '' && images === undefined && note === undefined) continue;
      if (last?.role !== 'user') out.push(message);
      else out[out.length - 1] = joinedUsers(last, message);
    } else if (message.role === 'tool') {
      out.push({ ...message, callId: ids(message.callId) });
    } else if (message.text.trim() !== '' || message.toolCalls.length > 0) {
      const toolCalls = message.toolCalls.map((call) => ({ ...call, id: ids(call.id) }));
      out.push({ ...message, toolCalls });
    }
  }
  return out;
}

type Ids = (id: ToolMessage['callId']) => ToolMessage['callId'];
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

/** A session may hold ids of another vendor; each keeps one safe name throughout the request. */
function createSafeIds(messages: readonly ModelMessage[]): Ids {
  const renamed = new Map<string, ToolMessage['callId']>();
  const taken = new Set<string>(
    messages.flatMap((m) => (m.role === 'assistant' ? m.toolCalls.map((call) => call.id) : [])),
  );
  return (id) => {
    if (SAFE_ID.test(id)) return id;
    const known = renamed.get(id);
    if (known !== undefined) return known;
    const stem = id.replace(UNSAFE_CHARACTERS, '_').slice(0, MAX_ID_CHARS - 4) || 'call';
    let name = stem;
    for (let n = 2; taken.has(name); n += 1) name = `${stem}_${n}`;
    taken.add(name);
    renamed.set(id, name as typeof id);
    return name as typeof id;
  };
}

/** Arguments as an object; text that is none goes under one key, so that nothing is lost. */
export function argumentsObject(raw: string): Readonly<Record<string, unknown>> {
  if (raw.trim() === '') return {};
  const read = readJson(raw);
  const value = read.kind === 'parsed' ? read.value : undefined;
  return fieldsOf(value) ?? { malformed_arguments: raw };
}
