// Lines of text as they are made of a page: blanks run together, blocks begin lines, lists and quotes
// stand in front of them.

export type Mark = {
  /** Written before the first word of it. */
  readonly open: string;
  /** Written behind the last one. */
  readonly close: (shown: string) => string;
};

export type List = { next: number | undefined; readonly step: number };

/** Deeper ones are not set in any further. */
const MAX_INDENTS = 10;
/** A longer text is not compared with the address behind it. */
const MAX_SHOWN_CHARS = 2000;

export class TextLines {
  readonly #lines: string[] = [];
  /** The line that is being written, in pieces: long lines are made of very many. */
  #pieces: string[] = [];
  readonly #marks: Mark[] = [];
  readonly #begun = new Map<Mark, { readonly line: number; readonly piece: number }>();
  readonly lists: List[] = [];
  quotes = 0;
  preformatted = 0;
  /** In front of the next line, once: the sign of a list item. */
  #sign = '';
  #isGapDue = false;
  #endsInBlank = true;

  end(): readonly string[] {
    this.breakLine();
    const isWritten = (line: string) => line !== '';
    const first = this.#lines.findIndex(isWritten);
    return first < 0 ? [] : this.#lines.slice(first, this.#lines.findLastIndex(isWritten) + 1);
  }

  /** What follows begins a line. */
  breakLine(): void {
    if (this.#pieces.length === 0) return;
    this.#lines.push(this.#pieces.join('').trimEnd());
    this.#pieces = [];
    this.#endsInBlank = true;
  }

  /** What follows stands apart by an empty line. */
  paragraph(): void {
    this.breakLine();
    // The sign of a list item and its text are on one line.
    if (this.#sign === '') this.#isGapDue = true;
  }

  /** As written: twice in a row it leaves an empty line. */
  lineBreak(): void {
    if (this.#pieces.length === 0) this.#lines.push('');
    else this.breakLine();
  }

  /** @param sign empty at the end of an item */
  item(sign: string): void {
    this.breakLine();
    this.#sign = sign;
  }

  /** A line as it is. */
  line(text: string): void {
    this.breakLine();
    if (text === '') this.#isGapDue = true;
    else this.#append(text);
    this.breakLine();
  }

  open(mark: Mark): void {
    this.#marks.push(mark);
  }

  close(mark: Mark): void {
    const waiting = this.#marks.indexOf(mark);
    if (waiting >= 0) {
      this.#marks.splice(waiting, 1);
      return;
    }
    const begun = this.#begun.get(mark);
    this.#begun.delete(mark);
    if (begun === undefined) return;
    const isHere = begun.line === this.#lines.length;
    const close = mark.close(isHere ? this.#since(begun.piece) : '');
    if (close === '') return;
    if (this.#pieces.length === 0) {
      // The line has ended, and the mark belongs to it.
      this.#lines.push(`${this.#lines.pop() ?? ''}${close}`);
      return;
    }
    const last = this.#pieces.pop() ?? '';
    const trimmed = last.trimEnd();
    this.#pieces.push(trimmed, close, last.length > trimmed.length ? ' ' : '');
  }

  #since(piece: number): string {
    let text = '';
    for (let at = piece; at < this.#pieces.length && text.length < MAX_SHOWN_CHARS; at += 1) {
      text += this.#pieces[at];
    }
    return text.trim();
  }

  write(raw: string): void {
    if (this.preformatted > 0) {
      for (const [index, part] of raw.split(/\r\n?|\n/).entries()) {
        if (index > 0) this.lineBreak();
        if (part !== '') this.#append(part);
      }
      return;
    }
    const collapsed = raw.replace(/\s+/g, ' ');
    const text = this.#endsInBlank ? collapsed.trimStart() : collapsed;
    if (text !== '') this.#append(text);
  }

  #append(text: string): void {
    this.#begin();
    if (text.trim() !== '' && this.#marks.length > 0) {
      const indent = text.length - text.trimStart().length;
      this.#pieces.push(text.slice(0, indent));
      for (const mark of this.#marks.splice(0)) {
        this.#begun.set(mark, { line: this.#lines.length, piece: this.#pieces.length + 1 });
        this.#pieces.push(mark.open);
      }
      this.#pieces.push(text.slice(indent));
    } else this.#pieces.push(text);
    this.#endsInBlank = /\s$/.test(text);
  }

  #begin(): void {
    if (this.#pieces.length > 0) return;
    if (this.#isGapDue && this.#lines.length > 0 && this.#lines.at(-1) !== '') this.#lines.push('');
    this.#isGapDue = false;
    const depth = Math.min(MAX_INDENTS, this.lists.length - (this.#sign === '' ? 0 : 1));
    const quote = '> '.repeat(Math.min(MAX_INDENTS, this.quotes));
    const front = `${quote}${'  '.repeat(Math.max(0, depth))}${this.#sign}`;
    this.#sign = '';
    if (front !== '') this.#pieces.push(front);
  }
}
