// An answer that has begun to repeat itself is not waited for: the call is ended, asked once more, and
// where that goes the same way the answer is cut off behind what it said once, and says so.

import { type AnswerLoop, loopIn } from '../core/answer-loop.ts';
import type { ModelMessage } from '../core/transcript.ts';
import type { ModelCall } from './model-call.ts';
import type { Finished } from './take-answer.ts';

/** New characters between two looks. */
const STEP_CHARS = 500;
const MORE_VARIED = 0.3;
const MAX_TEMPERATURE = 1.2;

type Stream = { text: string; lookedAt: number };

/** Looks at what one call writes, as it comes. */
export class LoopWatch {
  readonly #repeats: number;
  readonly #streams = { text: newStream(), thinking: newStream() };
  /** The call is to be ended; `loop`: where its text, not its thinking, began to repeat itself. */
  broken: { readonly loop?: AnswerLoop } | undefined;
  hasCalls = false;

  /** `repeats`: 0: nothing is broken off. */
  constructor(repeats: number) {
    this.#repeats = repeats;
  }

  get text(): string {
    return this.#streams.text.text;
  }

  /** Whether the call is to be ended. */
  isLooping(kind: 'text' | 'thinking', delta: string): boolean {
    const stream = this.#streams[kind];
    stream.text += delta;
    if (this.#repeats === 0 || stream.text.length - stream.lookedAt < STEP_CHARS) return false;
    stream.lookedAt = stream.text.length;
    const loop = loopIn(stream.text, this.#repeats);
    if (loop !== undefined) this.broken = kind === 'text' ? { loop } : {};
    return loop !== undefined;
  }

  restart(): void {
    this.#streams.text = newStream();
    this.#streams.thinking = newStream();
    this.hasCalls = false;
  }
}

const newStream = (): Stream => ({ text: '', lookedAt: 0 });

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
export function cutAnswer({ handle }: ModelCall, { broken, text: all }: LoopWatch): Finished {
  const said = broken?.loop === undefined ? '' : all.slice(0, broken.loop.saidAt);
  const text = said === '' ? '' : `${closed(said)}\n\n${CUT_OFF}`;
  return { type: 'finished', model: handle.name, text, thinking: [], toolCalls: [], stop: 'end' };
}

/** A block of code that was open is closed. */
function closed(text: string): string {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1 ? `${text}\n${fences.at(-1)?.trim() ?? ''}` : text;
}
