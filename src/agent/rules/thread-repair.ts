// Turns a transcript into a thread that every provider accepts, also after a crash, a trim or file
// damage: each call has exactly one result directly after it, roles alternate, no text is empty,
// ids and arguments are well-formed. The transcript itself is not changed.

import { type AttachedMedia, isImage } from '../../kernel/message/attachment.ts';
import { type CallId, callId } from '../../kernel/message/ids.ts';
import type {
  AssistantEntry,
  ModelMessage,
  ToolCall,
  ToolEntry,
  TranscriptEntry,
  TurnEndEntry,
  UserEntry,
} from '../../kernel/message/transcript.ts';
import { withCurrentMarks } from '../../kernel/message/untrusted.ts';
import { isObject, readJson } from '../../lib/json/json.ts';
import { BOTH_OFFERED, type Offered, summaryText } from './context-marks.ts';

const INTERRUPTED_RESULT = '[interrupted: no result of this call is available]';
const EMPTY_RESULT = '[no output]';
export const CONVERSATION_RESUMED = '[Conversation resumed]';
export const CONTINUE = '[Continue.]';
const STOPPED = '[The person stopped the previous answer.]';
const TAKEN_OVER = '[You did not answer this: your owner answers here in your place.]';
const UNANSWERED = '[No answer to the message above could be given.]';

type Slot = { readonly call: ToolCall; result: ToolEntry | undefined };
/** An answer whose calls get their results from later entries. */
type Called = {
  readonly role: 'called';
  readonly entry: AssistantEntry;
  readonly slots: readonly Slot[];
};

export function repairThread(
  entries: readonly TranscriptEntry[],
  offered: Offered = BOTH_OFFERED,
): readonly ModelMessage[] {
  const pieces = piecesOf(entries, offered);
  const messages = mergeRoles(
    pieces.flatMap((piece) => (piece.role === 'called' ? messagesOf(piece) : piece)),
  );
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', text: CONVERSATION_RESUMED });
  if (messages.at(-1)?.role === 'assistant') messages.push({ role: 'user', text: CONTINUE });
  return withWellFormedCalls(messages);
}

/** In order, with each result moved to its call; results without a call are dropped. */
function piecesOf(
  entries: readonly TranscriptEntry[],
  offered: Offered,
): readonly (ModelMessage | Called)[] {
  const pieces: (ModelMessage | Called)[] = [];
  const open = new Map<string, readonly Slot[]>();
  const seenCalls = new Set<string>();
  const add = (message: UserMessage | undefined) => {
    if (message !== undefined) pieces.push(message);
  };
  const visible = entries.slice(entries.findLastIndex((entry) => entry.role === 'reset') + 1);
  for (const [place, entry] of visible.entries()) {
    switch (entry.role) {
      case 'user':
        add(said(shownText(entry), entry.media));
        break;
      case 'summary':
        add(said(summaryText(entry, offered)));
        break;
      case 'assistant':
        if (isReplaced(entry, visible, place) || isRepeated(entry, seenCalls)) break;
        if (entry.toolCalls.length > 0) pieces.push(openCalls(entry, open));
        else if (entry.text.trim() !== '') pieces.push(answerOf(entry));
        break;
      case 'tool':
        fill(open.get(slotKey(entry.turnId, entry.callId)) ?? [], entry);
        break;
      case 'turn_end':
        if (entry.outcome === 'stopped') add(said(stoppedText(entry)));
        if (entry.outcome === 'failed') add(said(UNANSWERED));
        break;
      case 'reset':
      case 'undo':
      case 'restore':
        break;
    }
  }
  return pieces;
}

/** With the marks that the prompt explains, also where an earlier version stored others. */
const shownText = ({ text, isForeign }: UserEntry | ToolEntry) =>
  isForeign === true ? withCurrentMarks(text) : text;

const stoppedText = ({ isTakenOver }: TurnEndEntry) =>
  isTakenOver === true ? TAKEN_OVER : STOPPED;

/** A draft that an answer of its turn follows. */
const isReplaced = (
  { isDraft, toolCalls, turnId }: AssistantEntry,
  entries: readonly TranscriptEntry[],
  place: number,
) =>
  isDraft === true &&
  toolCalls.length === 0 &&
  entries.some(
    (later, at) =>
      at > place &&
      later.role === 'assistant' &&
      later.turnId === turnId &&
      later.isDraft !== true &&
      later.text.trim() !== '',
  );

/** A duplicated line; not the case of servers that restart the numbers of calls in each answer. */
function isRepeated(entry: AssistantEntry, seen: Set<string>): boolean {
  if (entry.toolCalls.length === 0) return false;
  const key = [entry.turnId, entry.at, entry.text, ...entry.toolCalls.map(callKey)].join('\n');
  if (seen.has(key)) return true;
  seen.add(key);
  return false;
}

const callKey = (call: ToolCall) => `${call.id} ${call.name} ${call.arguments}`;
const slotKey = (turnId: string, id: CallId) => `${turnId} ${id}`;

function openCalls(entry: AssistantEntry, open: Map<string, readonly Slot[]>): Called {
  const slots = entry.toolCalls.map((call): Slot => ({ call, result: undefined }));
  for (const { call } of slots) {
    const sameId = slots.filter((slot) => slot.call.id === call.id);
    open.set(slotKey(entry.turnId, call.id), sameId);
  }
  return { role: 'called', entry, slots };
}

/** The first result counts, unless it only says that the outcome is unknown. */
function fill(slots: readonly Slot[], entry: ToolEntry) {
  const slot =
    slots.find(({ result }) => result === undefined) ??
    slots.find(({ result }) => result?.status === 'unknown');
  if (slot !== undefined) slot.result = entry;
}

/** Undefined for a message without anything to show. */
function said(shown: string, media?: readonly AttachedMedia[]): UserMessage | undefined {
  const text = shown.toWellFormed();
  const images = imagesAmong(media);
  if (text.trim() === '' && images.images === undefined) return undefined;
  return { role: 'user', text, ...images };
}

const answerOf = ({ text, toolCalls, thinking }: AssistantEntry): ModelMessage => ({
  role: 'assistant',
  text: text.toWellFormed(),
  toolCalls,
  thinking,
});

function messagesOf({ entry, slots }: Called): readonly ModelMessage[] {
  const results = slots.map(({ call, result }): ModelMessage => {
    const text = (result === undefined ? INTERRUPTED_RESULT : shownText(result)).toWellFormed();
    return {
      role: 'tool',
      callId: call.id,
      name: call.name,
      text: text.trim() === '' ? EMPTY_RESULT : text,
      failed: result?.status !== 'ok',
      ...imagesAmong(result?.media),
    };
  });
  return [answerOf(entry), ...results];
}

function imagesAmong(media?: readonly AttachedMedia[]) {
  const images = media?.filter(isImage) ?? [];
  return images.length === 0 ? {} : { images };
}

/** Joins neighbouring messages of one role. `between`: separates the texts of two answers. */
export function mergeRoles(messages: readonly ModelMessage[], between = '\n\n'): ModelMessage[] {
  const merged: ModelMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (message.role === 'user' && last?.role === 'user') {
      merged[merged.length - 1] = joinedUsers(last, message);
    } else if (message.role === 'assistant' && last?.role === 'assistant') {
      merged[merged.length - 1] = {
        ...message,
        text: [last.text, message.text].filter((text) => text.trim() !== '').join(between),
        thinking: [...last.thinking, ...message.thinking],
      };
    } else {
      merged.push(message);
    }
  }
  return merged;
}

type UserMessage = Extract<ModelMessage, { role: 'user' }>;

export function joinedUsers(first: UserMessage, second: UserMessage): UserMessage {
  const text = [first.text, second.text].filter((part) => part.trim() !== '').join('\n\n');
  const images = [...(first.images ?? []), ...(second.images ?? [])];
  const { note } = second;
  return {
    role: 'user',
    text,
    ...(images.length === 0 ? {} : { images }),
    ...(note === undefined ? {} : { note }),
  };
}

const WELL_FORMED_ID = /^[a-zA-Z0-9_-]{1,64}$/;
const ILL_FORMED_NAME_CHARS = /[^a-zA-Z0-9_-]/g;
const MAX_NAME_CHARS = 64;

/** Makes ids unique in the thread, and names and arguments parseable for every provider. */
function withWellFormedCalls(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const used = new Set<string>();
  let newIds: CallId[] = [];
  return messages.map((message): ModelMessage => {
    if (message.role === 'assistant') {
      if (message.toolCalls.length === 0) return message;
      newIds = message.toolCalls.map((call) => uniqueId(call.id, used));
      const toolCalls = message.toolCalls.map(
        (call, index): ToolCall => ({
          id: newIds[index] ?? call.id,
          name: wellFormedName(call.name),
          arguments: wellFormedArguments(call.arguments),
        }),
      );
      return { ...message, toolCalls };
    }
    if (message.role === 'user') return message;
    // Results follow their calls one by one and in the same order.
    const id = newIds.shift() ?? message.callId;
    return { ...message, callId: id, name: wellFormedName(message.name) };
  });
}

function uniqueId(id: CallId, used: Set<string>): CallId {
  let candidate: string = id;
  for (let number = used.size; !WELL_FORMED_ID.test(candidate) || used.has(candidate); number++) {
    candidate = `call_${number}`;
  }
  used.add(candidate);
  return callId(candidate);
}

function wellFormedName(name: string): string {
  const cleaned = name.replace(ILL_FORMED_NAME_CHARS, '_').slice(0, MAX_NAME_CHARS);
  return cleaned === '' ? 'unnamed' : cleaned;
}

/** Invalid arguments go back to the model as text, so that it sees its error. */
function wellFormedArguments(json: string): string {
  if (json.trim() === '') return '{}';
  const read = readJson(json);
  if (read.kind === 'parsed' && isObject(read.value)) return json;
  return JSON.stringify({ unreadable: json.toWellFormed() });
}
