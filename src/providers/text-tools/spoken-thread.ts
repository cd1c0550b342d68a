// A conversation in text alone, for models that know neither tools nor their results as messages:
// calls and results as JSON of the protocol, person and model strictly by turns, the person first and
// last.

import { CONTINUE, CONVERSATION_RESUMED, joinedUsers } from '../../agent/rules/thread-repair.ts';
import type { ModelMessage } from '../../kernel/message/transcript.ts';
import { argumentsObject } from '../wire-messages.ts';

type User = Extract<ModelMessage, { role: 'user' }>;
type Assistant = Extract<ModelMessage, { role: 'assistant' }>;
type Tool = Extract<ModelMessage, { role: 'tool' }>;

/** `done`: earlier answers are shown as the protocol wants the next one. */
export type AnswersAs = 'done' | 'text';

export function spokenThread(
  messages: readonly ModelMessage[],
  answersAs: AnswersAs,
  unimitated: (text: string) => string,
): readonly ModelMessage[] {
  const spoken = messages.flatMap((message) => spokenMessage(message, answersAs, unimitated));
  const merged = byTurns(spoken);
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', text: CONVERSATION_RESUMED });
  if (merged.at(-1)?.role !== 'user') merged.push({ role: 'user', text: CONTINUE });
  return merged;
}

function spokenMessage(
  message: ModelMessage,
  answersAs: AnswersAs,
  unimitated: (text: string) => string,
): readonly (User | Assistant)[] {
  if (message.role === 'tool') return [spokenResult(message)];
  if (message.role === 'user') return isEmpty(message) ? [] : [unforged(message)];
  const text = unimitated(message.text).trim();
  const calls = message.toolCalls.map(({ name, arguments: raw }) =>
    JSON.stringify({ tool: name, args: argumentsObject(raw) }),
  );
  if (text === '' && calls.length === 0) return [];
  const isEnd = calls.length === 0 && answersAs === 'done';
  const said = isEnd ? JSON.stringify({ done: true, response: text }) : text;
  const whole = [said, ...calls].filter((part) => part !== '').join('\n');
  return [{ role: 'assistant', text: whole, toolCalls: [], thinking: [] }];
}

function spokenResult({ name, text, failed, images }: Tool): User {
  const outcome = failed ? { success: false, error: text } : { success: true, data: text };
  return {
    role: 'user',
    text: JSON.stringify({ tool_result: { tool: name, ...outcome } }),
    ...(images === undefined ? {} : { images }),
  };
}

const isEmpty = ({ text, images, note }: User) =>
  text.trim() === '' && images === undefined && note === undefined;

/** What a person writes must not pass for the result of a tool. */
const unforged = (message: User): User => ({
  ...message,
  text: message.text.replace(/\{(\s*)"tool_result"/g, '{$1"quoted_tool_result"'),
});

function byTurns(messages: readonly (User | Assistant)[]): (User | Assistant)[] {
  const merged: (User | Assistant)[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (message.role === 'user' && last?.role === 'user') {
      merged[merged.length - 1] = joinedUsers(last, message);
    } else if (message.role === 'assistant' && last?.role === 'assistant') {
      merged[merged.length - 1] = { ...last, text: `${last.text}\n${message.text}` };
    } else {
      merged.push(message);
    }
  }
  return merged;
}
