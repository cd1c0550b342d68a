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
