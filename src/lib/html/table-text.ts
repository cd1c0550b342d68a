// A table as lines: one for each row with its cells parted by bars, or, where a table only arranges a
// page, its cells one below the other.

/** The text of a cell, its lines as they would stand alone. */
export type TableCell = {
  readonly lines: readonly string[];
  /** Holds rows of a table of its own, which would not be told from this one on the same line. */
  readonly holdsRows: boolean;
};

export type TableLines = {
  readonly lines: readonly string[];
  /** There is a row of several cells, or more than one line. */
  readonly isTable: boolean;
};

/** Longer text of several lines is kept in its lines. */
const MAX_CELL_CHARS = 300;
/** Columns or rows that one cell is followed across. */
const MAX_SPAN = 50;
/** Empty cells that stand for spanned ones, in one table. */
const MAX_FILLED = 5_000;
const EMPTY: TableCell = { lines: [], holdsRows: false };

/** The cells of one row: their number can be told, also where the last ones are empty. */
export const rowLine = (cells: readonly string[]): string =>
  cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ');

export class TableText {
  readonly #rows: TableCell[][] = [];
  /** Rows that a cell above goes on through, by column. */
  readonly #spanned = new Map<number, number>();
  #isArrangement: boolean;
  #hasHeading = false;
  #filled = 0;

  /** @param isArrangement it says of itself that it holds no data */
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

  /** The columns that cells above take up come first. */
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
