// Looks at what a model writes while it comes: whether it has begun to repeat itself. What is done
// about it is left to loop-cut.ts.

import { type AnswerLoop, loopIn } from './rules/answer-loop.ts';

/** New characters between two looks. */
const STEP_CHARS = 500;
type Stream = { text: string; lookedAt: number };

/** Looks at what one call writes, as it comes. */
export class LoopWatch {
  readonly #repeats: number;
  readonly #asked: string;
  readonly #streams = { text: newStream(), thinking: newStream() };
  /** The call is to be ended; `loop`: where its text, not its thinking, began to repeat itself. */
  broken: { readonly loop?: AnswerLoop } | undefined;
  hasCalls = false;

  /** `repeats`: 0: nothing is broken off; `asked`: what the person said, who may want it so. */
  constructor(repeats: number, asked: string) {
    this.#repeats = repeats;
    this.#asked = asked;
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
    const loop = loopIn(stream.text, this.#repeats, this.#asked);
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
