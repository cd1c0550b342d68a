// What the strictest provider of either dialect would refuse in a thread; empty = it is taken.

import type { ModelMessage } from '../../src/kernel/message/transcript.ts';

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

export function threadFaults(messages: readonly ModelMessage[]): readonly string[] {
  const faults: string[] = [];
  const ids = new Set<string>();
  let awaited: readonly string[] = [];
  if (messages[0]?.role !== 'user') faults.push('the first message is not of the user');
  if (messages.at(-1)?.role === 'assistant') faults.push('the last message is of the assistant');
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1]?.role;
    if (message.role === 'tool') {
      if (awaited[0] !== message.callId)
        faults.push(`${index}: result ${message.callId} is out of place`);
      awaited = awaited.slice(1);
      if (message.text.trim() === '') faults.push(`${index}: empty result`);
      continue;
    }
    if (awaited.length > 0) faults.push(`${index}: calls ${awaited.join()} have no result`);
    awaited = [];
    if (message.role === 'user') {
      if (before === 'user') faults.push(`${index}: two user messages in a row`);
      const said = message.text + (message.note ?? '');
      if (said.trim() === '') faults.push(`${index}: empty user message`);
      continue;
    }
    if (before === 'assistant') faults.push(`${index}: two assistant messages in a row`);
    if (message.text.trim() === '' && message.toolCalls.length === 0) {
      faults.push(`${index}: empty assistant message`);
    }
    for (const call of message.toolCalls) {
      if (ids.has(call.id)) faults.push(`${index}: call id ${call.id} is used twice`);
      ids.add(call.id);
      if (!NAME.test(call.id)) faults.push(`${index}: call id ${call.id} is ill-formed`);
      if (!NAME.test(call.name)) faults.push(`${index}: tool name ${call.name} is ill-formed`);
      if (!isObject(call.arguments)) faults.push(`${index}: arguments are no object`);
    }
    awaited = message.toolCalls.map(({ id }) => id);
  }
  if (awaited.length > 0) faults.push(`calls ${awaited.join()} at the end have no result`);
  return faults;
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
