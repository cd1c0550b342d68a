// Follows one JSON object or list while it streams: where it ends, which key comes first, and the
// text of `response` as soon as it is written. What it means is read from the whole afterwards.

export type ObjectStep = {
  /** `not`: it is no JSON; `whole`: its last bracket was this character. */
  readonly state: 'open' | 'whole' | 'not';
  /** Of the answer to the person, newly written. */
  readonly said: string;
};

const OPEN: ObjectStep = { state: 'open', said: '' };
const NOT: ObjectStep = { state: 'not', said: '' };
const SPACE = /\s/;
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
};

export class ObjectReader {
  #raw = '';
  #depth = 0;
  #root = '';
  /** `closing`: behind a quote that ends the string, unless what follows says otherwise. */
  #string: 'none' | 'inside' | 'escape' | 'closing' = 'none';
  #escape = '';
  #spaces = '';
  #text = '';
  #isKey = false;
  #key = '';
  #word = '';
  #isDone = false;
  #pair = '';
  #firstKey: string | undefined;

  get raw(): string {
    return this.#raw;
  }

  /** Of the object, or of the first one in a list. */
  get firstKey(): string | undefined {
    return this.#firstKey;
  }

  push(char: string): ObjectStep {
    this.#raw += char;
    if (this.#string === 'closing' && ',}]:'.includes(char)) {
      this.#string = 'none';
      this.#close();
    }
    if (this.#string !== 'none') return { state: 'open', said: this.#inString(char) };
    return this.#outside(char);
  }

  #outside(char: string): ObjectStep {
    if (SPACE.test(char)) return OPEN;
    const isFirst = this.#firstKey === undefined && this.#depth === this.#level;
    if (this.#root === '') this.#root = char;
    else if (isFirst && char !== '"' && char !== '}') return NOT;
    else if (this.#root === '[' && this.#depth === 1 && this.#firstKey === undefined) {
      if (char !== '{') return NOT;
    }
    if (char === '"') this.#begin();
    else if (char === '{' || char === '[') this.#depth += 1;
    else if (char === '}' || char === ']') this.#depth -= 1;
    if (this.#depth === 0) return { state: 'whole', said: '' };
    this.#follow(char);
    return OPEN;
  }

  get #level(): number {
    return this.#root === '[' ? 2 : 1;
  }

  /** Keys and values of the outermost object. */
  #follow(char: string): void {
    if (this.#depth !== this.#level) return;
    if (char === '{' || char === ',') {
      if (this.#key === 'done') this.#isDone = this.#word === 'true';
      this.#isKey = true;
      this.#word = '';
    } else if (char === ':') {
      this.#isKey = false;
    } else if (char !== '"' && !this.#isKey) {
      this.#word += char;
    }
  }

  #begin(): void {
    this.#string = 'inside';
    this.#text = '';
  }

  #inString(char: string): string {
    if (this.#string === 'escape') return this.#escaped(char);
    if (this.#string === 'closing') return this.#behindQuote(char);
    if (char === '\\') {
      this.#string = 'escape';
      this.#escape = '';
      return '';
    }
    if (char !== '"') return this.#take(char);
    this.#string = 'closing';
    this.#spaces = '';
    return '';
  }

  #escaped(char: string): string {
    this.#escape += char;
    if (this.#escape[0] === 'u' && this.#escape.length < 5 && /^u[\da-f]*$/i.test(this.#escape)) {
      return '';
    }
    this.#string = 'inside';
    const written = this.#escape;
    if (/^u[\da-f]{4}$/i.test(written)) {
      return this.#take(String.fromCharCode(Number.parseInt(written.slice(1), 16)));
    }
    if (written.length > 1) return this.#take(`\\${written}`);
    if ('"\\/'.includes(written)) return this.#take(written);
    return this.#take(SHORT_ESCAPES[written] ?? `\\${written}`);
  }

  #behindQuote(char: string): string {
    if (SPACE.test(char)) {
      this.#spaces += char;
      return '';
    }
    this.#string = 'inside';
    return this.#take(`"${this.#spaces}`) + this.#inString(char);
  }

  #close(): void {
    if (this.#depth !== this.#level || !this.#isKey) return;
    this.#key = this.#text;
    this.#firstKey ??= this.#text;
  }

  #take(text: string): string {
    if (!this.#isLive) {
      if (this.#isKey) this.#text += text;
      return '';
    }
    return this.#wholePairs(text);
  }

  /** Half of a surrogate pair waits for the other half. */
  #wholePairs(text: string): string {
    const joined = this.#pair + text;
    const isHalf = /[\uD800-\uDBFF]$/.test(joined);
    this.#pair = isHalf ? joined.slice(-1) : '';
    return (isHalf ? joined.slice(0, -1) : joined).toWellFormed();
  }

  get #isLive(): boolean {
    const isAnswer = this.#isDone && this.#key === 'response' && !this.#isKey;
    return this.#root === '{' && this.#depth === 1 && isAnswer;
  }
}
