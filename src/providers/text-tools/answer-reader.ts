// Reads an answer while it streams and splits it: text for the person, calls, and the answer inside
// of the protocol's JSON as it is written. Where the pieces are cut makes no difference. What may
// be protocol is held back until that is decided; other text passes unchanged.

import { isObject } from '../../lib/json/json.ts';
import { looseJson } from '../../lib/json/loose-json.ts';
import {
  AnswerParts,
  type Ended,
  mayOpen,
  openingOf,
  type Part,
  type Pieces,
  type Reading,
  type Spot,
} from './answer-parts.ts';
import { type Dialect, isMeant, saidIn, type WrittenBy } from './dialects.ts';
import { isForTheProgram, ObjectReader, readSaid, type Said } from './written-calls.ts';

type Candidate =
  | { readonly kind: 'opening'; readonly begun: string }
  /** Inside a fence of the protocol, before or after an object. */
  | { readonly kind: 'fence'; readonly tail: string }
  | { readonly kind: 'object'; readonly reader: ObjectReader }
  | { readonly kind: 'span'; readonly dialect: Dialect; readonly from: number };

/** Of the mark that ends a span. */
const MAX_MARK_CHARS = 24;

export class AnswerReader {
  readonly #reading: Reading;
  readonly #model: WrittenBy;
  readonly #parts: AnswerParts;
  #candidate: Candidate | undefined;
  #spot: Spot = { isStart: true, isLineStart: true, isFenced: false };
  /** The whole candidate with the fence around it. */
  #held = '';
  /** The end of it. */
  #tail = '';
  /** The meaning of the objects in the fence. */
  #inFence: readonly Said[] = [];
  #said = '';

  constructor(reading: Reading, model: WrittenBy) {
    this.#reading = reading;
    this.#model = model;
    this.#parts = new AnswerParts(reading);
  }

  push(delta: string): Pieces {
    for (const char of delta) this.#step(char);
    return this.#parts.take();
  }

  /** `isCut`: the answer reached its length limit. */
  end(isCut: boolean): Ended {
    this.#endCandidate(isCut);
    return this.#parts.end();
  }

  #step(char: string): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return void this.#read(char);
    this.#held += char;
    this.#tail = (this.#tail + char).slice(-MAX_MARK_CHARS);
    switch (candidate.kind) {
      case 'opening':
        return void this.#open(candidate.begun + char);
      case 'fence':
        return void this.#readFence(candidate.tail, char);
      case 'object':
        return void this.#readObject(candidate.reader, char);
      case 'span':
        return void this.#readSpan(candidate);
    }
  }

  #read(char: string): void {
    const spot = { ...this.#parts.spot, isFenced: false };
    if (this.#parts.isCode || !mayOpen(char, spot)) return void this.#parts.plain(char);
    this.#spot = spot;
    this.#held = char;
    this.#inFence = [];
    this.#said = '';
    this.#open(char);
  }

  #open(begun: string): void {
    const opening = openingOf(begun, this.#spot, this.#reading);
    switch (opening.kind) {
      case 'no':
        return void this.#release(this.#spot.isFenced ? this.#held.length : 1);
      case 'may':
        this.#candidate = { kind: 'opening', begun };
        return;
      case 'fence':
        this.#spot = { ...this.#spot, isFenced: true };
        this.#candidate = { kind: 'fence', tail: '' };
        return;
      case 'span':
        this.#candidate = {
          kind: 'span',
          dialect: opening.dialect,
          from: opening.dialect.open.length,
        };
        return;
      case 'object':
        return void this.#beginObject(begun);
    }
  }

  #beginObject(begun: string): void {
    const reader = new ObjectReader();
    this.#candidate = { kind: 'object', reader };
    for (const char of begun) reader.push(char);
  }

  /** The first `plain` characters are text; what follows may start a new candidate. */
  #release(plain: number): void {
    const held = this.#held;
    this.#candidate = undefined;
    this.#held = '';
    for (const char of held.slice(0, plain)) this.#parts.plain(char);
    for (const char of held.slice(plain)) this.#step(char);
  }

  #releaseAll(): void {
    this.#release(this.#held.length);
  }

  #readFence(tail: string, char: string): void {
    const line = tail + char;
    if (/^[\s,;]*$/.test(line)) {
      this.#candidate = { kind: 'fence', tail: line };
    } else if (char === '{' || char === '[') {
      this.#open(char);
    } else if (this.#inFence.length > 0 && /\n\s*`{1,3}$/.test(`\n${line}`)) {
      if (line.endsWith('```')) return void this.#settle(this.#inFence);
      this.#candidate = { kind: 'fence', tail: line };
    } else if (this.#said === '') {
      this.#releaseAll();
    } else {
      this.#settle(this.#inFence);
      for (const each of line) this.#step(each);
    }
  }

  get #isSure(): boolean {
    return !this.#spot.isFenced && (this.#spot.isStart || this.#spot.isLineStart);
  }

  #readObject(reader: ObjectReader, char: string): void {
    const { state, said } = reader.push(char);
    const isLive = this.#reading.isSpoken && (this.#isSure || this.#spot.isStart);
    if (isLive && said !== '' && this.#inFence.length === 0) this.#said += this.#parts.live(said);
    if (state === 'not') this.#releaseAll();
    if (state === 'whole') this.#understand(looseJson(reader.raw), reader.firstKey);
  }

  /** Interprets an object: at once, or together with the rest of its fence. */
  #understand(value: unknown, firstKey: string | undefined): void {
    const said = this.#meaning(value, firstKey);
    if (this.#spot.isFenced && said.kind !== 'other') {
      this.#inFence = [...this.#inFence, said];
      this.#candidate = { kind: 'fence', tail: '' };
    } else if (said.kind !== 'other') {
      this.#settle([said]);
    } else if (this.#spot.isStart && this.#reading.isAsked && !this.#spot.isFenced) {
      this.#settle([said]);
    } else {
      this.#releaseAll();
    }
  }

  #meaning(value: unknown, firstKey = ''): Said {
    const said = readSaid(value, this.#reading.isSpoken);
    if (this.#said !== '') return this.#restOf(said);
    if (value === undefined && isForTheProgram({ [firstKey]: true })) {
      return { kind: 'broken', problem: 'the JSON cannot be read' };
    }
    const isNamed = isObject(value) && Object.hasOwn(value, 'tool') && this.#spot.isStart;
    if (said.kind === 'calls' && !isNamed && !this.#areOffered(said)) return { kind: 'other' };
    return said;
  }

  /** The rest of an answer that was partly streamed. */
  #restOf(said: Said): Said {
    const whole = said.kind === 'done' ? said.response : '';
    if (whole.startsWith(this.#said)) {
      this.#said += this.#parts.live(whole.slice(this.#said.length));
    }
    return { kind: 'done', response: this.#said };
  }

  #areOffered({ calls }: Extract<Said, { kind: 'calls' }>): boolean {
    return calls.every(({ name }) => this.#reading.offered.has(name));
  }

  #readSpan(span: Extract<Candidate, { kind: 'span' }>): void {
    const close = span.dialect.closes.find((mark) => this.#tail.endsWith(mark));
    if (close === undefined || this.#held.length - close.length < span.from) return;
    this.#endSpan(span, this.#held.slice(span.from, -close.length));
  }

  #endSpan({ dialect }: Extract<Candidate, { kind: 'span' }>, body: string): void {
    const isTrusted = this.#isTrusted(dialect);
    const { offered } = this.#reading;
    const said = saidIn(dialect, body, { offered, isTrusted, model: this.#model });
    if (said === undefined) this.#releaseAll();
    else this.#settle([said], isTrusted);
  }

  #isTrusted(dialect: Dialect): boolean {
    return dialect.isToken || this.#isSure;
  }

  #settle(said: readonly Said[], isSure = this.#isSure || this.#said !== ''): void {
    const part: Part = { raw: this.#held, said };
    this.#candidate = undefined;
    this.#held = '';
    if (isSure && said.every(({ kind }) => kind !== 'other')) this.#parts.ours(part, this.#said);
    else this.#parts.pend(part);
    this.#said = '';
  }

  #endCandidate(isCut: boolean): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    if (candidate.kind === 'span') {
      const body = this.#held.slice(candidate.from);
      if (!isCut) return void this.#endSpan(candidate, body);
      const isCall = this.#isTrusted(candidate.dialect) && isMeant(body);
      return void (isCall ? this.#forget() : this.#releaseAll());
    }
    if (candidate.kind === 'object') return void this.#endObject(candidate.reader, isCut);
    if (candidate.kind === 'fence' && this.#inFence.length > 0)
      return void this.#settle(this.#inFence);
    this.#releaseAll();
  }

  #endObject(reader: ObjectReader, isCut: boolean): void {
    const isOurs = isForTheProgram({ [reader.firstKey ?? '']: true });
    const value = looseJson(reader.raw, isCut ? 'cut' : 'ended');
    if (isCut && value === undefined && (isOurs || this.#said !== '')) return void this.#forget();
    if (value === undefined && !isOurs && this.#said === '') return void this.#releaseAll();
    this.#understand(value, reader.firstKey);
    if (this.#candidate?.kind === 'fence') this.#settle(this.#inFence);
  }

  /** Drops an incomplete part of the protocol: of no use to the program or the person. */
  #forget(): void {
    if (this.#said === '') this.#parts.cut();
    this.#candidate = undefined;
    this.#held = '';
  }
}
