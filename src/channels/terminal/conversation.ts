// CONTRACT of a conversation from this terminal, with a gateway in this process or another one on
// this machine; and one question followed through the chat's events to its last answer.

import { randomUUID } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { LiveUpdate } from '../../kernel/message/message.ts';
import { writeAtomic } from '../../lib/files/files.ts';
import type { LocalEvent } from '../local-channel.ts';

export interface Conversation {
  /** Resolves when the message is durable. `clientId` makes a repeat harmless. */
  submit(clientId: string, text: string): Promise<void>;
  /** Everything said in the chat after `afterSeq`, then new events, until aborted. */
  events(afterSeq: number, signal: AbortSignal): AsyncIterable<LocalEvent>;
  /** Stops the running turn of the chat. */
  stop(): Promise<void>;
}

// What was typed in earlier conversations, one JSON text a line, newest last.

const MAX_ENTRIES = 1000;
const PRIVATE_FILE = 0o600;

export type History = Awaited<ReturnType<typeof openHistory>>;

/** An unreadable file starts empty; damaged lines are skipped. */
export async function openHistory(path: string) {
  const stored = await readFile(path, 'utf8').catch(() => '');
  const lines = stored.split('\n').filter((line) => line !== '');
  if (lines.length > 2 * MAX_ENTRIES) {
    await writeAtomic(path, `${lines.slice(-MAX_ENTRIES).join('\n')}\n`);
  }
  let entries = lines.slice(-MAX_ENTRIES).flatMap(parseEntry).reverse();
  return {
    /** Newest first, as line editors expect. */
    get entries(): readonly string[] {
      return entries;
    },
    async add(text: string): Promise<void> {
      if (text === '' || text === entries[0]) return;
      entries = [text, ...entries].slice(0, MAX_ENTRIES);
      await appendFile(path, `${JSON.stringify(text)}\n`, { mode: PRIVATE_FILE });
    },
  };
}

function parseEntry(line: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? [value] : [];
  } catch {
    return [];
  }
}

// Follows one question through the chat's events to its last answer.

export type AnswerEvent =
  | { readonly type: 'live'; readonly update: LiveUpdate }
  /** A final text: an answer, or one that the agent sent before it. */
  | { readonly type: 'text'; readonly markdown: string; readonly final: boolean }
  | { readonly type: 'done'; readonly outcome: 'answered' | 'stopped' | 'failed' };

type TurnEnd = NonNullable<LiveUpdate['result']>;

export type Questions = ReturnType<typeof createQuestions>;

/** Asks questions one after the other, each followed to its last answer. */
export function createQuestions(conversation: Conversation) {
  let lastSeq = 0;

  async function* noting(events: AsyncIterable<LocalEvent>) {
    for await (const event of events) {
      if (event.type === 'said') lastSeq = event.seq;
      yield event;
    }
  }

  return {
    async *ask(text: string, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
      const clientId = randomUUID();
      const events = conversation.events(lastSeq, signal);
      await conversation.submit(clientId, text);
      yield* followAnswer(noting(events), clientId);
    },
  };
}

/** `turnId/n`; texts sent before the answer are `turnId/say/n`. */
const ANSWER_ID = /^(.*#\d+)\/(\d+)$/;

/**
 * Ends with `done` once every answer to the question has arrived. Skips events before the question,
 * and answers only to an earlier one.
 */
export async function* followAnswer(
  events: AsyncIterable<LocalEvent>,
  clientId: string,
): AsyncGenerator<AnswerEvent, void, void> {
  let question: MessageId | undefined;
  /** The question and what people said after it. */
  const asked = new Set<MessageId>();
  const isMine = (replyTo: MessageId | undefined) => replyTo === undefined || asked.has(replyTo);
  const ends = new Map<string, TurnEnd>();
  let heard = 0;
  for await (const event of events) {
    if (event.type === 'said' && event.from === 'person') {
      if (event.id.endsWith(clientId)) question = event.id;
      if (question !== undefined) asked.add(event.id);
    } else if (question === undefined) {
    } else if (event.type === 'live') {
      const { turnId, phase, result, replyTo } = event.update;
      if (phase === 'ended' && result !== undefined) ends.set(turnId, result);
      // A turn that began with an earlier question may have included this one: its answers show it.
      // If it was stopped, so were the messages behind it.
      const isStoppedBefore = !isMine(replyTo) && result?.kind === 'stopped';
      if (isMine(replyTo)) yield { type: 'live', update: event.update };
      if (isStoppedBefore || (isMine(replyTo) && result?.answers === 0)) {
        return yield { type: 'done', outcome: endOf(result.kind) };
      }
    } else if (event.ended !== undefined) {
      ends.set(event.ended.turn, event.ended);
    } else if (isMine(event.replyTo)) {
      const turn = ANSWER_ID.exec(event.id)?.[1];
      const isReply = event.id === `${question}/reply`;
      yield { type: 'text', markdown: event.text, final: turn !== undefined || isReply };
      if (isReply) return yield { type: 'done', outcome: 'answered' };
      if (turn === undefined) continue;
      heard += 1;
      // A command's reply and the notice about a dead letter come without the end of a turn.
      const end = ends.get(turn);
      if (heard >= (end?.answers ?? 1)) {
        return yield { type: 'done', outcome: endOf(end?.kind) };
      }
    }
  }
}

/** A turn that continues in another chat is over here. */
function endOf(kind: TurnEnd['kind'] = 'answered'): 'answered' | 'stopped' | 'failed' {
  return kind === 'moved' ? 'stopped' : kind;
}
