// Splits an answer into text and possible tool calls: the openings by which a call is recognised,
// and the parts between them.

import { isObject } from '../../lib/json/json.ts';
import { looseJson } from '../../lib/json/loose-json.ts';
import { BARE_PYTHON, type Dialect, dialectOf, MISQUOTED } from './dialects.ts';
import {
  isForTheProgram,
  PROTOCOL_KEYS,
  type Said,
  type SpokenCall,
  TRAINED_KEYS,
} from './written-calls.ts';

export type Reading = {
  /** Names of the tools. */
  readonly offered: ReadonlySet<string>;
  readonly mayCall: boolean;
  /** The model was told the protocol, or sees it in its own earlier calls. */
  readonly isSpoken: boolean;
  /** It was told to answer only in the protocol. */
  readonly isAsked: boolean;
};

export type Spot = {
  /** Nothing precedes it. */
  readonly isStart: boolean;
  readonly isLineStart: boolean;
  readonly isFenced: boolean;
};

export type Opening =
  | { readonly kind: 'no' }
  | { readonly kind: 'may' }
  | { readonly kind: 'object' }
  | { readonly kind: 'fence' }
  | { readonly kind: 'span'; readonly dialect: Dialect };

const NO: Opening = { kind: 'no' };
const MAY: Opening = { kind: 'may' };
const OBJECT: Opening = { kind: 'object' };

/** Whether a form of the protocol can start with this character. */
export const mayOpen = (char: string, { isLineStart }: Spot): boolean =>
  char === '{' || char === '[' || char === '<' || (char === '`' && isLineStart);

/** Bounds the text before a first key, or after the marks of a fence. */
const MAX_OPENING_CHARS = 200;

export function openingOf(text: string, spot: Spot, reading: Reading): Opening {
  if (text.length > MAX_OPENING_CHARS) return NO;
  if (text.startsWith('`')) return fenceOpening(text);
  const dialect = spot.isFenced ? 'no' : dialectOf(text);
  if (typeof dialect === 'object') return { kind: 'span', dialect };
  const other = text.startsWith('<') ? NO : jsonOrPython(text, spot, reading);
  return other.kind === 'no' && dialect === 'may' ? MAY : other;
}

/** Only a fence that may hold JSON or a call is examined. */
function fenceOpening(text: string): Opening {
  if (/^`{3,}\s*(?:json\w*|tool\w*|javascript|js)?[ \t]*\r?\n$/i.test(text)) {
    return { kind: 'fence' };
  }
  return /^`{1,2}$|^`{3,}[^`\n]*$/.test(text) ? MAY : NO;
}

function jsonOrPython(text: string, spot: Spot, reading: Reading): Opening {
  const [, called, bracket] = /^\[\s*([\w.-]*)(\(?)$/.exec(text) ?? [];
  if (called !== undefined && called !== '' && spot.isStart && !spot.isFenced) {
    const isOffered = [...reading.offered].some((name) => name.startsWith(called));
    if (bracket === '') return isOffered ? MAY : NO;
    return reading.offered.has(called) ? { kind: 'span', dialect: BARE_PYTHON } : NO;
  }
  return jsonOpening(text, spot, reading);
}

const MISQUOTED_OPENING = /^\{\s*['‘’“”„]([a-z_]*)(['‘’“”]?)$/;
const KEY_OPENING = /^(?:\[\s*)?(?:\{\s*(?:"([^"\\]*)("?))?)?$/;
/** Keys of OpenAI's wire format that a model may repeat. */
const WRAPPING_KEYS = ['type', 'id'];
const MEANT_KEYS = ['args', 'response', 'action', 'tool_call', 'tool_name', 'function_call'];

/**
 * Only if the model was told to answer only in the protocol: elsewhere it may be a line of Python.
 */
function misquotedOpening(
  text: string,
  { isStart, isFenced }: Spot,
  { isAsked }: Reading,
): Opening {
  const [, key, quote] = MISQUOTED_OPENING.exec(text) ?? [];
  if (key === undefined || !isStart || isFenced || !isAsked) return NO;
  if (quote === '') return PROTOCOL_KEYS.some((one) => one.startsWith(key)) ? MAY : NO;
  return PROTOCOL_KEYS.includes(key) ? { kind: 'span', dialect: MISQUOTED } : NO;
}

function jsonOpening(text: string, spot: Spot, reading: Reading): Opening {
  const misquoted = misquotedOpening(text, spot, reading);
  if (misquoted.kind !== 'no') return misquoted;
  const match = KEY_OPENING.exec(text);
  if (match === null) return NO;
  const [, key, quote] = match;
  if (key === undefined) return MAY;
  if (spot.isStart && reading.isAsked && !spot.isFenced && text.startsWith('{')) return OBJECT;
  const keys = keysAt(spot, reading);
  if (quote === '"') return keys.includes(key) ? OBJECT : NO;
  return keys.some((one) => one.startsWith(key)) ? MAY : NO;
}

function keysAt(spot: Spot, { isSpoken, isAsked }: Reading): readonly string[] {
  const spoken = isSpoken ? PROTOCOL_KEYS : [];
  const meant = isAsked && spot.isStart ? MEANT_KEYS : [];
  const isTrained = spot.isStart || (isAsked && (spot.isLineStart || spot.isFenced));
  const trained = isTrained ? [...TRAINED_KEYS, ...(spot.isStart ? WRAPPING_KEYS : [])] : [];
  return [...spoken, ...meant, ...trained];
}

// The parts of an answer in order: text for the person, calls, and problems. A part that may be a
// call or an example waits here for what follows it.

export type Part = {
  readonly raw: string;
  readonly said: readonly Said[];
};

export type Pieces = { readonly text: string; readonly calls: readonly SpokenCall[] };

export type Ended = Pieces & {
  /** For the model, so that it can correct it; undefined: nothing is wrong. */
  readonly problem: string | undefined;
  /** Text for the person if the problem is not corrected. */
  readonly instead: string;
};

const NEITHER = 'it is JSON, but neither a call nor "done"';
const MIXED =
  'it mixes a call with other text. To make the call, write its JSON alone; to answer, put the whole text into "response"';
const IMITATED =
  'it contains a tool result, which only the program writes. Call the tool, or answer from what you know';
const NOT_NOW = 'no tool may be called now; answer with what you have';

const CUT = 'it was too long and was cut off. Use smaller steps';

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
  /** Directly after a part of the protocol. */
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

  /** A character that is text. */
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

  /** Streams the answer inside of the protocol while it is written; returns the text to show. */
  live(text: string): string {
    if (this.#hasCalled || this.#isInvented || this.#waiting !== undefined) return '';
    if (this.#isBehind) this.#part();
    this.#lead = '';
    this.#say(text);
    return text;
  }

  /** A part that is certainly protocol; the person has already seen `alreadySaid` of it. */
  ours(part: Part, alreadySaid: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const said of [...(waiting?.said ?? []), ...part.said]) this.#apply(said, alreadySaid);
    this.#place = new TextPlace();
    this.#isBehind = true;
    this.#lead = '';
  }

  /** Counts only if nothing but more of its kind follows. */
  pend({ raw, said }: Part): void {
    const { raw: before = '', said: saidBefore = [] } = this.#waiting ?? {};
    this.#waiting = { raw: before + raw, said: [...saidBefore, ...said] };
    this.#place = new TextPlace();
  }

  /** A call was started and not completed. */
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
        // Text after a call was written without its result.
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

/** The text in it for the person. */
function wordsOf(value: unknown): string {
  if (!isObject(value)) return '';
  return WORDS.map((key) => value[key]).find((text) => typeof text === 'string') ?? '';
}

// The Markdown context of a position: at the start of a line, in a code span, in a fence.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** Enough of a line to recognise a fence. */
const LINE_START_CHARS = 80;

class TextPlace {
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
