// The parts of an answer in their order: what the person is told, what is called, and what is wrong.
// Something that may be a call or an example waits here for what follows it.

import { isObject } from '../../lib/json/fields.ts';
import { looseJson } from './loose-json.ts';
import type { Reading, Spot } from './openings.ts';
import { isForTheProgram, type Said, type SpokenCall } from './protocol.ts';

export type Part = {
  readonly raw: string;
  readonly said: readonly Said[];
};

export type Pieces = { readonly text: string; readonly calls: readonly SpokenCall[] };

export type Ended = Pieces & {
  /** For the model, that it may correct it; undefined: nothing is wrong. */
  readonly problem: string | undefined;
  /** What the person is told besides, where it is not corrected. */
  readonly instead: string;
};

const NEITHER = 'it is JSON, but neither a call nor the end';
const MIXED =
  'it has a call in the midst of other text. To make the call, write its JSON alone; as an answer, put all of the text into "response"';
const IMITATED =
  'it has the result of a tool, and only the program writes those. Call the tool, or answer from what you know';
const NOT_NOW = 'no tool may be called now; answer with what you have';

const CUT = 'it was cut off, being longer than one message may be. Do it in smaller steps';

const SPACE = /\s/;

export class AnswerParts {
  readonly #reading: Reading;
  #text = '';
  #calls: SpokenCall[] = [];
  #hasCalled = false;
  #hasSpoken = false;
  #place = new TextPlace();
  #lead = '';
  #last = '';
  /** Directly behind something of ours. */
  #isBehind = false;
  #waiting: Part | undefined;
  #isInvented = false;
  #problem: string | undefined;
  #instead = '';

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  get isCode(): boolean {
    return this.#place.isCode;
  }

  get spot(): Omit<Spot, 'isFenced'> {
    const isStart = !this.#hasSpoken && !this.#hasCalled && this.#waiting === undefined;
    return { isStart, isLineStart: this.#isBehind || this.#place.isLineStart };
  }

  /** A character that is not for the program. */
  plain(char: string): void {
    if (this.#isInvented) return;
    const isSpace = SPACE.test(char);
    if (this.#waiting !== undefined && isSpace) {
      this.#waiting = { ...this.#waiting, raw: this.#waiting.raw + char };
      this.#place.push(char);
      return;
    }
    this.#giveUpWaiting();
    if (this.#isBehind && (isSpace || char === ',' || char === ';')) return;
    if (!this.#hasSpoken && !this.#hasCalled && isSpace) {
      this.#lead += char;
      this.#place.push(char);
      return;
    }
    if (this.#isBehind) this.#part();
    this.#say(this.#lead + char);
    this.#lead = '';
    this.#place.push(char);
  }

  /** Of the answer inside of the protocol, while it is written; what of it was said. */
  live(text: string): string {
    if (this.#hasCalled || this.#isInvented || this.#waiting !== undefined) return '';
    if (this.#isBehind) this.#part();
    this.#lead = '';
    this.#say(text);
    return text;
  }

  /** Surely for the program; `alreadySaid` of it the person was told. */
  ours(part: Part, alreadySaid: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const said of [...(waiting?.said ?? []), ...part.said]) this.#apply(said, alreadySaid);
    this.#place = new TextPlace();
    this.#isBehind = true;
    this.#lead = '';
  }

  /** Counts where nothing but more of its kind follows. */
  pend({ raw, said }: Part): void {
    const { raw: before = '', said: saidBefore = [] } = this.#waiting ?? {};
    this.#waiting = { raw: before + raw, said: [...saidBefore, ...said] };
    this.#place = new TextPlace();
  }

  /** A call was begun that was not to its end. */
  cut(): void {
    this.#problem ??= CUT;
  }

  take(): Pieces {
    const pieces = { text: this.#text, calls: this.#calls };
    this.#text = '';
    this.#calls = [];
    return pieces;
  }

  end(): Ended {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting?.said.some(({ kind }) => kind === 'other')) this.#neither(waiting.raw);
    else for (const said of waiting?.said ?? []) this.#apply(said, '');
    const problem = this.#hasCalled ? undefined : this.#problem;
    const isEmpty = !this.#hasSpoken && !this.#hasCalled && problem === undefined;
    const lead = isEmpty ? this.#lead : '';
    const { text, calls } = this.take();
    return { text: text + lead, calls, problem, instead: this.#instead };
  }

  #apply(said: Said, alreadySaid: string): void {
    if (this.#isInvented) return;
    switch (said.kind) {
      case 'calls':
        if (!this.#reading.mayCall) {
          this.#problem ??= NOT_NOW;
          return;
        }
        this.#calls.push(...said.calls);
        this.#hasCalled = true;
        return;
      case 'done':
        if (alreadySaid === '') this.live(said.response);
        return;
      case 'result':
        // What follows a call is written without its result.
        if (this.#hasCalled) this.#isInvented = true;
        else this.#problem ??= IMITATED;
        return;
      case 'broken':
        this.#problem ??= said.problem;
        return;
      case 'other':
        return;
    }
  }

  #neither(raw: string): void {
    this.#problem ??= NEITHER;
    const value = looseJson(raw);
    this.#instead = isForTheProgram(value) ? wordsOf(value) : this.#lead + raw;
  }

  #giveUpWaiting(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    const isOurs = waiting.said.every(({ kind }) => kind !== 'other');
    if (isOurs && this.#reading.isAsked) this.#problem ??= MIXED;
    if (this.#isBehind) this.#part();
    this.#say(this.#lead + waiting.raw);
    this.#lead = '';
  }

  #part(): void {
    this.#isBehind = false;
    if (this.#hasSpoken && !SPACE.test(this.#last)) this.#say('\n\n');
  }

  #say(text: string): void {
    if (text === '') return;
    this.#text += text;
    this.#last = text.slice(-1);
    this.#hasSpoken = true;
  }
}

const WORDS = ['response', 'answer', 'final_answer', 'message', 'content', 'text'];

/** What of it was meant for the person. */
function wordsOf(value: unknown): string {
  if (!isObject(value)) return '';
  return WORDS.map((key) => value[key]).find((text) => typeof text === 'string') ?? '';
}

// Where in Markdown the text stands: at the beginning of a line, in a code span, in a fence.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Enough of a line to know a fence. */
const LINE_START_CHARS = 80;

export class TextPlace {
  #line = '';
  #ticks = 0;
  #fence = '';

  push(char: string): void {
    if (char === '\n') return void this.#nextLine();
    if (this.#line.length < LINE_START_CHARS) this.#line += char;
    if (char === '`') this.#ticks += 1;
  }

  get isLineStart(): boolean {
    return this.#line.trim() === '';
  }

  get isCode(): boolean {
    return this.#fence !== '' || this.#ticks % 2 === 1;
  }

  #nextLine(): void {
    const marker = FENCE.exec(this.#line)?.[1] ?? '';
    if (this.#fence === '') this.#fence = marker;
    else if (marker.startsWith(this.#fence) && this.#line.trim() === marker) this.#fence = '';
    this.#line = '';
    this.#ticks = 0;
  }
}
