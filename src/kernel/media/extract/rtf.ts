// Rich Text Format 1.9.1: the text between the control words; skips font tables, pictures and
// program data.

import { t } from '../../../lib/texts.ts';
import { Sections } from './extract.ts';

const NO_TEXT = t`this document has no text`;
const TOKEN =
  /\\u(-?\d{1,6}) ?|\\'([0-9a-fA-F]{2})|\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)/g;
const PASSED_OVER = new Set([
  ...['fonttbl', 'colortbl', 'stylesheet', 'info', 'pict', 'object', 'header', 'footer'],
  ...['headerl', 'headerr', 'footerl', 'footerr', 'themedata', 'datastore', 'listtable'],
  ...['listoverridetable', 'latentstyles', 'xmlnstbl', 'rsidtbl', 'fldinst', 'generator'],
]);
const CELL_END = ' | ';
const WORDS: Readonly<Record<string, string>> = {
  par: '\n',
  line: '\n',
  sect: '\n\n',
  page: '\n\n',
  row: '\n',
  nestrow: '\n',
  cell: CELL_END,
  nestcell: CELL_END,
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
  readonly #decoder: TextDecoder;
  readonly #groups: Group[] = [{ ...OUTERMOST }];
  readonly #parts: string[] = [];
  /** Not decoded yet: a character may take two bytes, of which one may be written as a letter. */
  #bytes: number[] = [];
  /** Number of fallback characters after one that was written by its number. */
  #skip = 0;

  constructor(decoder: TextDecoder) {
    this.#decoder = decoder;
  }

  push([, code, hex, word, number, symbol, brace, plain]: RegExpExecArray): void {
    if (hex !== undefined) this.#encoded([Number.parseInt(hex, 16)]);
    else if (plain !== undefined) this.#encoded(Array.from(plain, (char) => char.charCodeAt(0)));
    else {
      this.#flush();
      if (code !== undefined) this.#byNumber(Number(code));
      else if (word !== undefined) this.#control(word, number);
      else if (symbol === '*') this.#group.isHidden = true;
      else if (symbol !== undefined) this.#write(SYMBOLS[symbol] ?? '');
      else if (brace !== undefined) this.#brace(brace);
    }
  }

  end(): string {
    this.#flush();
    return this.#parts.join('').toWellFormed();
  }

  get #group(): Group {
    return this.#groups.at(-1) ?? { ...OUTERMOST };
  }

  /** Fallback characters end with their group. */
  #brace(brace: string): void {
    this.#skip = 0;
    if (brace === '}' && this.#groups.length > 1) this.#groups.pop();
    else if (brace === '{' && this.#groups.length < MAX_DEPTH)
      this.#groups.push({ ...this.#group });
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
    else {
      // The last cell of a row ends with it.
      if (/row$/.test(word) && this.#parts.at(-1) === CELL_END) this.#parts.pop();
      this.#write(Object.hasOwn(WORDS, word) ? (WORDS[word] ?? '') : '');
    }
  }

  #encoded(bytes: readonly number[]): void {
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    if (!this.#group.isHidden) for (const byte of bytes.slice(skipped)) this.#bytes.push(byte);
  }

  #flush(): void {
    if (this.#bytes.length === 0) return;
    this.#parts.push(this.#decoder.decode(Uint8Array.from(this.#bytes)));
    this.#bytes = [];
  }

  #write(text: string): void {
    const kept = text.slice(this.#skip);
    this.#skip = Math.max(0, this.#skip - text.length);
    if (kept !== '' && !this.#group.isHidden) this.#parts.push(kept);
  }
}

/** Code pages whose names are not those of Windows (RTF 1.9.1, page 10). */
const CODE_PAGES: Readonly<Record<string, string>> = {
  874: 'windows-874',
  932: 'shift_jis',
  936: 'gb18030',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
};

function decoderOf(source: string): TextDecoder {
  const page = /\\ansicpg(\d{3,5})/.exec(source)?.[1] ?? '1252';
  try {
    return new TextDecoder(CODE_PAGES[page] ?? `windows-${page}`);
  } catch {
    return new TextDecoder('windows-1252');
  }
}
