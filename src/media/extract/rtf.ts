// Rich Text Format 1.9.1: the text between the control words; tables of fonts, pictures and what
// programs keep for themselves are passed over.

import { Sections } from './sections.ts';

const NO_TEXT = 'this document has no text';
const TOKEN =
  /\\u(-?\d{1,6}) ?|\\'([0-9a-fA-F]{2})|\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)/g;
const PASSED_OVER = new Set([
  ...['fonttbl', 'colortbl', 'stylesheet', 'info', 'pict', 'object', 'header', 'footer'],
  ...['headerl', 'headerr', 'footerl', 'footerr', 'themedata', 'datastore', 'listtable'],
  ...['listoverridetable', 'latentstyles', 'xmlnstbl', 'rsidtbl', 'fldinst', 'generator'],
]);
const WORDS: Readonly<Record<string, string>> = {
  par: '\n',
  line: '\n',
  sect: '\n\n',
  page: '\n\n',
  row: '\n',
  cell: ' | ',
  tab: '\t',
  emdash: '—',
  endash: '–',
  bullet: '•',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
};
const SYMBOLS: Readonly<Record<string, string>> = {
  '\\': '\\',
  '{': '{',
  '}': '}',
  '~': ' ',
  _: '-',
  '\n': '\n',
};
const MAX_DEPTH = 1000;

type Group = { isHidden: boolean; fallbackChars: number };
const OUTERMOST: Group = { isHidden: false, fallbackChars: 1 };

export function readRtf(content: Uint8Array) {
  const source = Buffer.from(content).toString('latin1');
  const text = new RichText(decoderOf(source));
  for (const match of source.matchAll(TOKEN)) text.push(match);
  const sections = new Sections();
  sections.add('', text.end());
  return sections.reading(NO_TEXT);
}

class RichText {
  readonly #decoder: { decode(bytes: Uint8Array): string };
  readonly #groups: Group[] = [{ ...OUTERMOST }];
  readonly #parts: string[] = [];
  /** Characters that stand in for one that was written by its number. */
  #skip = 0;

  constructor(decoder: { decode(bytes: Uint8Array): string }) {
    this.#decoder = decoder;
  }

  push([, code, hex, word, number, symbol, brace, plain]: RegExpExecArray): void {
    if (code !== undefined) this.#byNumber(Number(code));
    else if (hex !== undefined) {
      this.#write(this.#decoder.decode(Uint8Array.of(Number.parseInt(hex, 16))));
    } else if (word !== undefined) this.#control(word, number);
    else if (symbol === '*') this.#group.isHidden = true;
    else if (symbol !== undefined) this.#write(SYMBOLS[symbol] ?? '');
    else if (brace === '{' && this.#groups.length < MAX_DEPTH) {
      this.#groups.push({ ...this.#group });
    } else if (brace === '}' && this.#groups.length > 1) this.#groups.pop();
    else if (plain !== undefined) this.#write(plain);
  }

  end(): string {
    return this.#parts.join('').toWellFormed();
  }

  get #group(): Group {
    return this.#groups.at(-1) ?? { ...OUTERMOST };
  }

  #byNumber(code: number): void {
    this.#skip = 0;
    this.#write(String.fromCharCode(code & 0xffff));
    this.#skip = this.#group.fallbackChars;
  }

  #control(word: string, number: string | undefined): void {
    if (word === 'uc') this.#group.fallbackChars = Math.max(0, Number(number ?? 1));
    else if (word === 'v') this.#group.isHidden = number !== '0';
    else if (PASSED_OVER.has(word)) this.#group.isHidden = true;
    else this.#write(Object.hasOwn(WORDS, word) ? (WORDS[word] ?? '') : '');
  }

  #write(text: string): void {
    if (this.#group.isHidden) return;
    const kept = text.slice(this.#skip);
    this.#skip = Math.max(0, this.#skip - text.length);
    if (kept !== '') this.#parts.push(kept);
  }
}

function decoderOf(source: string): { decode(bytes: Uint8Array): string } {
  const page = /\\ansicpg(\d{3,5})/.exec(source)?.[1] ?? '1252';
  try {
    return new TextDecoder(`windows-${page}`);
  } catch {
    return new TextDecoder('windows-1252');
  }
}
