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

export function readRtf(content: Uint8Array) {
  const source = Buffer.from(content).toString('latin1');
  const decoder = decoderOf(source);
  const groups: Group[] = [{ isHidden: false, fallbackChars: 1 }];
  const parts: string[] = [];
  let skip = 0;
  const write = (text: string) => {
    if (groups.at(-1)?.isHidden === true) return;
    const kept = text.slice(skip);
    skip = Math.max(0, skip - text.length);
    if (kept !== '') parts.push(kept);
  };
  for (const match of source.matchAll(TOKEN)) {
    const [, code, hex, word, number, symbol, brace, plain] = match;
    const group = groups.at(-1) ?? { isHidden: false, fallbackChars: 1 };
    if (code !== undefined) {
      skip = 0;
      write(String.fromCharCode(Number(code) & 0xffff));
      skip = group.fallbackChars;
    } else if (hex !== undefined) write(decoder.decode(Uint8Array.of(Number.parseInt(hex, 16))));
    else if (word === 'uc') group.fallbackChars = Math.max(0, Number(number ?? 1));
    else if (word === 'v') group.isHidden = number !== '0';
    else if (word !== undefined && PASSED_OVER.has(word)) group.isHidden = true;
    else if (word !== undefined) {
      const text = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
      if (text !== undefined) write(text);
    } else if (symbol === '*') group.isHidden = true;
    else if (symbol !== undefined) write(SYMBOLS[symbol] ?? '');
    else if (brace === '{' && groups.length < MAX_DEPTH) groups.push({ ...group });
    else if (brace === '}' && groups.length > 1) groups.pop();
    else if (plain !== undefined) write(plain);
  }
  const sections = new Sections();
  sections.add('', parts.join('').toWellFormed());
  return sections.reading(NO_TEXT);
}

function decoderOf(source: string): { decode(bytes: Uint8Array): string } {
  const page = /\\ansicpg(\d{3,5})/.exec(source)?.[1] ?? '1252';
  try {
    return new TextDecoder(`windows-${page}`);
  } catch {
    return new TextDecoder('windows-1252');
  }
}
