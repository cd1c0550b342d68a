// What a terminal sends, made fit for a line editor: line breaks inside a paste and Alt+Enter become
// a mark that stands for a line break in the line.

import { Transform, type TransformCallback } from 'node:stream';

/** Shown in the line being edited where the text will have a line break. */
export const LINE_BREAK_MARK = '⏎';

const PASTE_START = '\x1b[200~';
const PASTE_END = '\x1b[201~';
const ESC = '\x1b';
const ALT_ENTER = new RegExp(`${ESC}(?:\r\n?|\n)`, 'g');
const LINE_BREAK = /\r\n?|\n/g;

/** Asks the terminal to mark what is pasted, and not to. */
export const MARK_PASTES = '\x1b[?2004h';
export const LEAVE_PASTES = '\x1b[?2004l';

export class KeyFilter extends Transform {
  readonly isTTY = true;
  readonly #source: NodeJS.ReadStream;
  readonly #decoder = new TextDecoder();
  #isPasting = false;
  #rest = '';

  constructor(source: NodeJS.ReadStream) {
    super();
    this.#source = source;
  }

  setRawMode(isRaw: boolean): this {
    this.#source.setRawMode(isRaw);
    return this;
  }

  override _transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback) {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    this.#rest = unfinishedMark(text);
    this.push(this.#translate(text.slice(0, text.length - this.#rest.length)));
    done();
  }

  #translate(text: string): string {
    const border = this.#isPasting ? PASTE_END : PASTE_START;
    const at = text.indexOf(border);
    const own = at === -1 ? text : text.slice(0, at);
    const marked = own.replace(this.#isPasting ? LINE_BREAK : ALT_ENTER, LINE_BREAK_MARK);
    if (at === -1) return marked;
    this.#isPasting = !this.#isPasting;
    return marked + this.#translate(text.slice(at + border.length));
  }
}

/** The end of a chunk that may be the beginning of a paste's mark. A lone Esc is a key. */
function unfinishedMark(text: string): string {
  const at = text.lastIndexOf('\x1b[');
  if (at === -1) return '';
  const tail = text.slice(at);
  const isCut = [PASTE_START, PASTE_END].some((mark) => mark !== tail && mark.startsWith(tail));
  return isCut ? tail : '';
}
