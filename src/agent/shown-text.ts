// The text of one model call as the person sees it grow: without hidden parts, withdrawn when the
// call starts again.

import type { AgentEvent } from '../core/event.ts';
import { HIDDEN_TEXT_START, type HiddenTextState, reveal, revealAll } from '../core/hidden-text.ts';
import type { Thread } from './thread.ts';

export class ShownText {
  readonly #thread: Thread;
  readonly #model: string;
  /** The person is not shown what is written here, only that the model is at work. */
  readonly #isHidden: boolean;
  #hidden = '';
  #state: HiddenTextState = HIDDEN_TEXT_START;
  #isThinking = false;

  constructor(thread: Thread, model: string, isHidden: boolean) {
    this.#thread = thread;
    this.#model = model;
    this.#isHidden = isHidden;
  }

  get text(): string {
    return this.#isHidden ? this.#hidden : (this.#thread.partial?.text ?? '');
  }

  *add(delta: string): Iterable<AgentEvent> {
    const { state, text, isRetracted } = reveal(this.#state, delta);
    this.#state = state;
    if (isRetracted) yield* this.#withdraw();
    if (text !== '') yield* this.#append(text);
    else if (state.mode === 'hidden') yield* this.think();
  }

  /** Said once until text follows: the live view needs no more. */
  *think(): Iterable<AgentEvent> {
    if (this.#isThinking) return;
    this.#isThinking = true;
    yield { type: 'thinking' };
  }

  *restart(): Iterable<AgentEvent> {
    this.#state = HIDDEN_TEXT_START;
    yield* this.#withdraw();
  }

  /** Brings what is shown in line with the whole text the provider gave at the end. */
  *complete(whole: string): Iterable<AgentEvent> {
    const text = revealAll(whole);
    if (!text.startsWith(this.text)) yield* this.#withdraw();
    const rest = text.slice(this.text.length);
    if (rest !== '') yield* this.#append(rest);
  }

  *#append(text: string): Iterable<AgentEvent> {
    if (this.#isHidden) {
      this.#hidden += text;
      return yield* this.think();
    }
    this.#isThinking = false;
    this.#thread.partial = { text: this.text + text, model: this.#model };
    yield { type: 'text_delta', text };
  }

  *#withdraw(): Iterable<AgentEvent> {
    if (this.text === '') return;
    this.#hidden = '';
    if (this.#isHidden) return;
    this.#thread.partial = undefined;
    yield { type: 'text_discarded' };
  }
}
