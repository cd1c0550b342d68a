// An answer that has begun to repeat itself is not waited for: the call is ended, asked once more, and
// where that goes the same way the answer is cut off behind what it said once, and says so.

import type { ModelMessage } from '../kernel/message/transcript.ts';
import { withFenceClosed } from '../lib/text/cut.ts';
import type { LoopWatch } from './guard-calls.ts';
import type { ModelCall } from './model-call.ts';
import type { Finished } from './take-answer.ts';

const MORE_VARIED = 0.3;
const MAX_TEMPERATURE = 1.2;

const AGAIN =
  '[Your answer to this was broken off: it said the same thing again and again. Answer anew, say each thing once, and stop when it is said.]';
export const ASKED_AGAIN =
  'The model repeated itself without end; I broke it off and ask once more.';
const CUT_OFF = '[The model repeated itself from here on and was broken off.]';

/** The same call, so that it hardly goes the same way. */
export function askedAgain(call: ModelCall): ModelCall {
  const { messages, temperature = MORE_VARIED } = call.request;
  const warmer = Math.min(MAX_TEMPERATURE, temperature + MORE_VARIED);
  const request = { ...call.request, messages: withNote(messages), temperature: warmer };
  return { ...call, request };
}

function withNote(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const last = messages.at(-1);
  if (last?.role !== 'user') return [...messages, { role: 'user', text: '', note: AGAIN }];
  const note = last.note === undefined ? AGAIN : `${last.note}\n\n${AGAIN}`;
  return [...messages.slice(0, -1), { ...last, note }];
}

/** What is kept of it; nothing where it only thought. */
export function cutAnswer(
  { handle }: Pick<ModelCall, 'handle'>,
  { broken, text: all }: LoopWatch,
): Finished {
  const said = broken?.loop === undefined ? '' : all.slice(0, broken.loop.saidAt);
  const text = said === '' ? '' : `${withFenceClosed(said)}\n\n${CUT_OFF}`;
  return { type: 'finished', model: handle.name, text, thinking: [], toolCalls: [], stop: 'end' };
}
