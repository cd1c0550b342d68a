// Text lines of a page: collapsed white space, blocks, lists and quotes, and tables as rows with
// separated cells.

export type Mark = {
  /** Written before its first word. */
  readonly open: string;
  /** Written after its last word. */
  readonly close: (shown: string) => string;
};

type List = { next: number | undefined; readonly step: number };

/** Deeper levels are not indented further. */
const MAX_INDENTS = 10;
/** A longer text is not compared with the address of its link. */
const MAX_SHOWN_CHARS = 2000;

export class TextLines {
  readonly #lines: string[] = [];
  /** The current line in pieces: long lines consist of very many. */
  #pieces: string[] = [];
  readonly #marks: Mark[] = [];
  readonly #begun = new Map<Mark, { readonly line: number; readonly piece: number }>();
  readonly lists: List[] = [];
  quotes = 0;
  preformatted = 0;
  /** It contains a table. */
  holdsRows = false;
  /** Written once before the next line: the marker of a list item. */
  #sign = '';
  #isGapDue = false;
  #endsInBlank = true;

  end(): readonly string[] {
    this.breakLine();
    const isWritten = (line: string) => line !== '';
    const first = this.#lines.findIndex(isWritten);
    return first < 0 ? [] : this.#lines.slice(first, this.#lines.findLastIndex(isWritten) + 1);
  }

  /** The next text starts a line. */
  breakLine(): void {
    if (this.#pieces.length === 0) return;
    this.#lines.push(this.#pieces.join('').trimEnd());
    this.#pieces = [];
    this.#endsInBlank = true;
  }

  /** The next text is separated by an empty line. */
  paragraph(): void {
    this.breakLine();
    // The marker of a list item and its text are on one line.
    if (this.#sign === '') this.#isGapDue = true;
  }

  /** As written: two in a row leave an empty line. */
  lineBreak(): void {
    if (this.#pieces.length === 0) this.#lines.push('');
    else this.breakLine();
  }

  /** @param sign empty at the end of an item */
  item(sign: string): void {
    this.breakLine();
    this.#sign = sign;
  }

  /** A line, unchanged. */
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

// A table as lines: one for each row with its cells separated by bars, or, if a table only arranges
// a page, its cells one below the other.

/** The text of a cell, as lines of its own. */
type TableCell = {
  readonly lines: readonly string[];
  /**
   * Contains rows of a table of its own, which could not be distinguished from this one on the same
   * line.
   */
  readonly holdsRows: boolean;
};

type TableLines = {
  readonly lines: readonly string[];
  /** There is a row of several cells, or more than one line. */
  readonly isTable: boolean;
};

/** Longer text of several lines keeps its lines. */
const MAX_CELL_CHARS = 300;
/** Columns or rows over which one cell is tracked. */
const MAX_SPAN = 50;
/** Empty cells for spanned ones, in one table. */
const MAX_FILLED = 5_000;
const EMPTY: TableCell = { lines: [], holdsRows: false };

/** The cells of one row; their number stays visible even if the last ones are empty. */
export const rowLine = (cells: readonly string[]): string =>
  cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ');

export class TableText {
  readonly #rows: TableCell[][] = [];
  /** Rows through which a cell above continues, by column. */
  readonly #spanned = new Map<number, number>();
  #isArrangement: boolean;
  #hasHeading = false;
  #filled = 0;

  /** @param isArrangement the table declares that it holds no data */
  constructor(isArrangement: boolean) {
    this.#isArrangement = isArrangement;
  }

  beginRow(): void {
    this.#rows.push([]);
    this.#fill();
  }

  addCell(cell: TableCell, span: { readonly columns: number; readonly rows: number }): void {
    const row = this.#rows.at(-1);
    if (row === undefined) return;
    const column = row.length;
    row.push(cell);
    if (cell.holdsRows) this.#isArrangement = true;
    for (let at = 1; at < Math.min(span.columns, MAX_SPAN) && this.#mayFill(); at += 1)
      row.push(EMPTY);
    if (span.rows > 1) {
      for (let at = column; at < row.length; at += 1)
        this.#spanned.set(at, Math.min(span.rows, MAX_SPAN) - 1);
    }
    this.#fill();
  }

  addHeading(): void {
    this.#hasHeading = true;
  }

  /** Columns of cells that continue from above come first. */
  #fill(): void {
    const row = this.#rows.at(-1);
    while (row !== undefined) {
      const left = this.#spanned.get(row.length) ?? 0;
      if (left === 0 || !this.#mayFill()) return;
      this.#spanned.set(row.length, left - 1);
      row.push(EMPTY);
    }
  }

  #mayFill(): boolean {
    this.#filled += 1;
    return this.#filled <= MAX_FILLED;
  }

  end(): TableLines {
    const isArrangement = this.#isArrangement && !this.#hasHeading;
    const lines: string[] = [];
    let isTable = false;
    for (const row of this.#rows) {
      const shown = row.filter(({ lines: text }) => text.length > 0);
      const isSingle = row.length === 1 || (isArrangement && shown.length <= 1);
      if (isSingle || shown.some(isBlock)) {
        const isApart = shown.some(({ lines: text }) => text.length > 1);
        if (isApart) lines.push('');
        for (const cell of shown) for (const line of cell.lines) lines.push(line);
        if (isApart) lines.push('');
        isTable ||= isApart || shown.length > 1;
      } else if (row.length > 0) {
        lines.push(rowLine(row.map(flat)));
        isTable = true;
      }
    }
    return { lines, isTable: isTable || lines.length > 1 };
  }
}

const isBlock = ({ lines, holdsRows }: TableCell) =>
  holdsRows ||
  (lines.length > 1 && lines.reduce((sum, line) => sum + line.length, 0) > MAX_CELL_CHARS);

const flat = ({ lines }: TableCell): string =>
  lines
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
