// One try of a model that may write calls into its text: turns the events of the provider below into
// those of one that calls tools, and knows what was wrong with the answer.

import type { ToolCall } from '../../kernel/message/transcript.ts';
import type { MintCallId } from '../call-ids.ts';
import type { ModelEvent } from '../provider.ts';
import { AnswerReader } from './answer-reader.ts';
import type { WrittenBy } from './dialects.ts';
import type { Reading } from './openings.ts';
import type { SpokenCall } from './protocol.ts';

type Finished = Extract<ModelEvent, { type: 'finished' }>;

export class Attempt {
  readonly #reader: AnswerReader | undefined;
  readonly #mint: MintCallId;
  readonly #calls: ToolCall[] = [];
  #raw = '';
  #text = '';
  #instead = '';
  #finished: Finished | undefined;
  #problem: string | undefined;

  /** Without `reading` the text is the answer as it is. */
  constructor(reading: Reading | undefined, model: WrittenBy, mint: MintCallId) {
    this.#reader = reading === undefined ? undefined : new AnswerReader(reading, model);
    this.#mint = mint;
  }

  /** As the model wrote it. */
  get raw(): string {
    return this.#raw;
  }

  /** For the model; known when all was taken. */
  get problem(): string | undefined {
    return this.#problem;
  }

  *take(event: ModelEvent): Generator<ModelEvent, void, void> {
    if (event.type === 'text') {
      this.#raw += event.delta;
      const { text, calls } = this.#reader?.push(event.delta) ?? { text: event.delta, calls: [] };
      yield* this.#say(text);
      yield* this.#call(calls);
    } else if (event.type === 'finished') {
      this.#finished = event;
      yield* this.#end(event);
    } else {
      yield event;
    }
  }

  /** The one `finished`, before it what was only to be said if nothing better comes. */
  *finish(): Generator<ModelEvent, void, void> {
    const event = this.#finished;
    if (event === undefined) return;
    yield* this.#say(this.#instead);
    const toolCalls = [...event.toolCalls, ...this.#calls];
    const stop = event.stop === 'end' && toolCalls.length > 0 ? 'tool_calls' : event.stop;
    yield { ...event, text: this.#text, toolCalls, stop };
  }

  *#end({ stop, toolCalls }: Finished): Generator<ModelEvent, void, void> {
    const ended = this.#reader?.end(stop === 'length');
    if (ended === undefined) return;
    yield* this.#say(ended.text);
    yield* this.#call(ended.calls);
    this.#instead = ended.instead;
    const isFinal = stop === 'refused' || toolCalls.length > 0;
    this.#problem = isFinal ? undefined : ended.problem;
  }

  *#say(delta: string): Generator<ModelEvent, void, void> {
    if (delta === '') return;
    this.#text += delta;
    yield { type: 'text', delta };
  }

  *#call(calls: readonly SpokenCall[]): Generator<ModelEvent, void, void> {
    for (const { name, args } of calls) {
      const id = this.#mint('text_call');
      this.#calls.push({ id, name, arguments: JSON.stringify(args) });
      yield { type: 'tool_call', id, name };
    }
  }
}
