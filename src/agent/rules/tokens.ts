// Estimates of tokens. Characters / 4 is only a start: what providers report corrects it per model.

import type { ModelMessage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { summaryText } from './context-marks.ts';

export const CHARS_PER_TOKEN = 4;
/** An image of 1568 pixels a side; vendors count between 700 and 1,600. */
const IMAGE_TOKENS = 1600;
/** Role and separators of one message. */
const MESSAGE_TOKENS = 4;
/** The line before a message that says when it came. */
const TIME_TOKENS = 6;

/** Of a result of a tool, where a conversation is summed up. */
export const TOLD_RESULT_TOKENS = 500;

/** Scripts with a token per character push the estimate up; code with long words pulls it down. */
const MIN_CORRECTION = 0.5;
const MAX_CORRECTION = 5;
/** Weight of the newest report. */
const CORRECTION_WEIGHT = 0.5;

export const textTokens = (text: string) => Math.ceil(text.length / CHARS_PER_TOKEN);

export function entryTokens(entry: TranscriptEntry): number {
  switch (entry.role) {
    case 'user':
      return MESSAGE_TOKENS + TIME_TOKENS + textTokens(entry.text);
    case 'summary':
      return MESSAGE_TOKENS + textTokens(summaryText(entry));
    case 'tool':
      return MESSAGE_TOKENS + textTokens(entry.text) + textTokens(entry.callId);
    case 'assistant':
      return assistantTokens(entry);
    case 'reset':
    case 'undo':
    case 'restore':
    case 'turn_end':
      return 0;
  }
}

/** The same as it is told to a model that sums up, which is shown the ends of a long result. */
export const toldTokens = (entry: TranscriptEntry) =>
  entry.role === 'tool' ? Math.min(entryTokens(entry), TOLD_RESULT_TOKENS) : entryTokens(entry);

export const entriesTokens = (entries: readonly TranscriptEntry[]) =>
  entries.reduce((sum, entry) => sum + entryTokens(entry), 0);

export function messagesTokens(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

function messageTokens(message: ModelMessage): number {
  if (message.role === 'assistant') return assistantTokens(message);
  const note = message.role === 'user' ? (message.note ?? '') : '';
  return MESSAGE_TOKENS + textTokens(message.text) + textTokens(note);
}

function assistantTokens(message: Extract<ModelMessage, { role: 'assistant' }>): number {
  const calls = message.toolCalls.map((call) => `${call.id}${call.name}${call.arguments}`);
  const thinking = message.thinking.map((block) => block.text);
  return MESSAGE_TOKENS + textTokens([message.text, ...calls, ...thinking].join(''));
}

/** Images in messages, of which a model is shown `atMost`. */
export function imagesTokens(messages: readonly ModelMessage[], atMost: number): number {
  const count = messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? 0 : (message.images?.length ?? 0)),
    0,
  );
  return Math.min(count, atMost) * IMAGE_TOKENS;
}

/** The factor for the next estimate, after a call estimated at `estimated` really took `actual`. */
export function correctedBy(
  factor: number | undefined,
  estimated: number,
  actual: number,
): number | undefined {
  if (estimated <= 0 || actual <= 0) return factor;
  const seen = actual / estimated;
  const next = factor === undefined ? seen : factor + CORRECTION_WEIGHT * (seen - factor);
  return Math.min(MAX_CORRECTION, Math.max(MIN_CORRECTION, next));
}
